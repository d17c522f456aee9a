"""`python -m xspec [overrides] [-m]`: Hydra composes, the arms compile, one scheduler executes them."""

import asyncio
import difflib
import os
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

from xspec.cli import VERBS, YES
from xspec.cli.hydra_run import hydra_run
from xspec.cli.launcher import launcher_of, without_launcher
from xspec.errors import SpecError, UserError, XspecError
from xspec.experiment.compile import Compiled, compile_config
from xspec.spec.compose import conf_digest, conf_dir, plain_of
from xspec.spec.config import validate_config
from xspec.spec.secrets import scan_plain
from xspec.spec.store import Store

FLAGS = {
    "--accept-lock-change": "accept_lock_change=true",
    "--retry-invalid": "retry_invalid=true",
}


def run(arguments: Sequence[str]) -> int:
    """Composes and compiles every arm, then executes them together. Nothing is sent unless all arms compile."""
    yes = YES in arguments
    arguments = [argument for argument in arguments if argument != YES]
    overrides, multirun = split_arguments(arguments)
    command = tuple(argument for argument in arguments if argument not in FLAGS)
    arms, store = compile_arms(overrides, multirun, command)
    for warning in dict.fromkeys(warning for arm in arms for warning in arm.warnings):
        print(f"xspec: {warning}", file=sys.stderr)
    if any(arm.confirm for arm in arms):
        from xspec.cli.confirm import confirm

        try:
            confirm(arms, store, yes=yes)
        except UserError:
            store.discard_if_made_here()
            raise
    if multirun and launcher_of(overrides) != "basic":
        from xspec.cli.sweep import launch

        return launch(overrides, arms, store, command)
    from xspec.cli.outcome import tell_end
    from xspec.experiment.execute import execute

    return tell_end(execute(arms, store), store)


def compile_arms(
    overrides: Sequence[str], multirun: bool, command: Sequence[str]
) -> tuple[list[Compiled], Store]:
    """Every arm of the command line, compiled in this process. Raises SpecError if one of them cannot be."""
    compiled: list[tuple[Compiled, Store]] = []
    refused: list[XspecError] = []
    conf = conf_digest(conf_dir())

    def job(config: Any) -> None:
        """Errors are kept until all jobs were seen."""
        try:
            if conf_digest(conf_dir()) != conf:
                raise UserError(
                    "the configuration was edited while the sweep was being composed; start it again"
                )
            compiled.append(compile_plain(plain_of(config), command))
        except XspecError as error:
            refused.append(error)

    with tempfile.TemporaryDirectory(prefix="xspec-sweep-") as notes:
        hydra_run(without_launcher(overrides), job, multirun=multirun, notes=notes)
    # arms refused for the same reason say it once
    messages = list(dict.fromkeys(map(str, refused)))
    for message in messages[1:]:
        print(f"xspec: {message}", file=sys.stderr)
    if refused:
        for store in {store.path: store for _, store in compiled}.values():
            store.discard_if_made_here()
        raise refused[0]
    if len({store.path for _, store in compiled}) > 1:
        for _, store in compiled:
            store.discard_if_made_here()
        raise SpecError("a sweep has one store, and store=… names several; sweep them one by one")
    return [arm for arm, _ in compiled], compiled[0][1]


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


def compile_plain(plain: dict[str, Any], command: Sequence[str] = ()) -> tuple[Compiled, Store]:
    """Plain composed configuration to a compiled arm in its store."""
    scan_plain(plain, os.environ)
    config = validate_config(plain)
    store = Store(config.store)
    try:
        return asyncio.run(compile_config(config, store, command)), store
    except XspecError:
        store.discard_if_made_here()
        raise
