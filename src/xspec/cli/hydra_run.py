"""Hydra's own entry point, called with arguments of ours and without its files, its log lines, its exit codes."""

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from xspec.errors import SpecError
from xspec.spec.compose import CONFIG_NAME, composing_errors, conf_dir, one_line


def hydra_run(overrides: Sequence[str], job: Callable[[Any], None], *, multirun: bool, notes: str) -> None:
    """Composes every job and hands it to `job` by way of the launcher. `notes` takes what Hydra insists on writing.

    Raises SpecError with Hydra's complaint on one line.
    """
    import hydra

    # lets Hydra's errors reach us; by itself it prints them, with the values in them, and exits
    os.environ["HYDRA_FULL_ERROR"] = "1"
    command = ["xspec", *overrides, f"hydra.sweep.dir='{notes}'", *(["-m"] if multirun else [])]
    argv, sys.argv = sys.argv, command
    try:
        hydra.main(config_path=str(conf_dir()), config_name=CONFIG_NAME, version_base=None)(job)()
    except composing_errors() as error:
        raise SpecError(one_line(error)) from None
    finally:
        sys.argv = argv
