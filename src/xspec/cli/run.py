"""`python -m xspec [overrides] [-m]`: Hydra composes, the arms compile, one scheduler executes them."""

import difflib
import os
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

from xspec.cli import VERBS
from xspec.errors import SpecError, UserError, XspecError
from xspec.experiment.compile import Compiled, compile_config
from xspec.spec.compose import CONFIG_NAME, conf_digest, conf_dir, one_line, plain_of
from xspec.spec.config import validate_config
from xspec.spec.secrets import scan_plain
from xspec.spec.store import Store

FLAGS = {
    "--accept-lock-change": "accept_lock_change=true",
    "--retry-invalid": "retry_invalid=true",
}
_CONF_DIGEST = "XSPEC_CONF_DIGEST"

_compiled: list[tuple[Compiled, Store]] = []
_refused: list[XspecError] = []
_command: list[str] = []


def run(arguments: Sequence[str]) -> int:
    """Composes and compiles every arm, then executes them together. Nothing is sent unless all arms compile."""
    overrides, multirun = split_arguments(arguments)
    _compiled.clear()
    _refused.clear()
    _command[:] = [argument for argument in arguments if argument not in FLAGS]
    os.environ[_CONF_DIGEST] = conf_digest(conf_dir())
    _compose_all(overrides, multirun)
    for message in dict.fromkeys(map(str, _refused)):  # arms refused for the same reason say it once
        print(f"xspec: {message}", file=sys.stderr)
    if _refused:
        return max(error.exit_code for error in _refused)
    from xspec.cli.outcome import tell_end
    from xspec.experiment.execute import execute

    store = _compiled[0][1]
    arms = [compiled for compiled, _ in _compiled]
    return tell_end(execute(arms, store), store)


def split_arguments(arguments: Sequence[str]) -> tuple[list[str], bool]:
    """Overrides, and whether it is a sweep. Raises SpecError for options xspec does not have."""
    overrides: list[str] = []
    multirun = False
    for argument in arguments:
        if argument in ("-m", "--multirun"):
            multirun = True
        elif argument in FLAGS:
            overrides.append(FLAGS[argument])
        elif argument.startswith("-"):
            raise SpecError(f"unknown option {argument}; `python -m xspec --help` lists the options")
        elif "=" not in argument and not argument.startswith("~"):
            near = difflib.get_close_matches(argument, VERBS, n=1)
            hint = (
                f"did you mean {near[0]}?"
                if near
                else f"verbs are {', '.join(VERBS)}; overrides look like k=3"
            )
            raise SpecError(f"{argument!r} is neither a verb nor an override; {hint}")
        else:
            overrides.append(argument)
    return overrides, multirun


def _compose_all(overrides: Sequence[str], multirun: bool) -> None:
    import hydra
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    os.environ["HYDRA_FULL_ERROR"] = (
        "1"  # lets Hydra's errors reach us instead of being printed with their values
    )
    # Hydra's note of the sweep says nothing that the stored specs do not.
    with tempfile.TemporaryDirectory(prefix="xspec-sweep-") as notes:
        command = [*overrides, f"hydra.sweep.dir='{notes}'", *(["-m"] if multirun else [])]
        argv, sys.argv = sys.argv, ["xspec", *command]
        try:
            hydra.main(config_path=str(conf_dir()), config_name=CONFIG_NAME, version_base=None)(
                _compile_job
            )()
        except (HydraException, OmegaConfBaseException) as error:
            raise SpecError(one_line(error)) from None
        finally:
            sys.argv = argv


def _compile_job(config: Any) -> None:
    """One job of Hydra's: compile, and leave executing to the scheduler. Errors are kept until all jobs were seen."""
    try:
        if conf_digest(conf_dir()) != os.environ[_CONF_DIGEST]:
            raise UserError("the configuration was edited while the sweep was being composed; start it again")
        _compiled.append(compile_plain(plain_of(config), _command))
    except XspecError as error:
        _refused.append(error)


def compile_plain(plain: dict[str, Any], command: Sequence[str] = ()) -> tuple[Compiled, Store]:
    """Plain composed configuration to a compiled arm in its store."""
    import asyncio

    scan_plain(plain, os.environ)
    config = validate_config(plain)
    store = Store(config.store)
    return asyncio.run(compile_config(config, store, command)), store
