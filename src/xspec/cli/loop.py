"""`python -m xspec loop`: baseline → guide from its trajectories → guided → compared. Resumable at each point."""

import argparse
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from xspec.benchmarks import environments
from xspec.cli.generating import (
    INTERRUPTED,
    add_options,
    ask_to_pay,
    execution_named,
    generate,
    generation_of,
)
from xspec.cli.outcome import tell_end
from xspec.cli.parser import VerbParser
from xspec.cli.run import FLAGS, compile_plain
from xspec.cli.say import say
from xspec.counted import counted
from xspec.errors import SpecError, UserError
from xspec.experiment.compile import Compiled
from xspec.experiment.execute import SweepEnd, execute
from xspec.experiment.generate_guide import ENVIRONMENT
from xspec.guides.selection import Selection
from xspec.records.executions import ExecutionFolder
from xspec.spec.compose import compose
from xspec.spec.store import Store

_FIXED = ("guide", "arm", "+arm")


def main(arguments: list[str]) -> int:
    parser = VerbParser(
        prog="python -m xspec loop",
        usage="python -m xspec loop [OVERRIDE …] [option …]",
        description="Executes the baseline, lets ALTK-Evolve write a guide from its trajectories (env create altk), "
        "executes the guided arm, and compares. What is done already is not done again.",
    )
    parser.add_argument(
        "overrides", nargs="*", metavar="OVERRIDE", help="as for an experiment: provider=openai k=3"
    )
    parser.add_argument(
        "--selection",
        choices=[name for name in get_args(Selection) if name != "top-n"],
        default="own-task",
        help="which task gets which rules (default: own-task)",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="the guide file (default: in the store)")
    parser.add_argument("--store", default=None, metavar="PATH")
    add_options(parser)
    options = parser.parse_args([argument for argument in arguments if argument not in FLAGS])
    # What is wrong or missing later on is told before anything is executed.
    generation_of(options)
    environments.require(ENVIRONMENT)
    again = shlex.join(
        ["python", "-m", "xspec", "loop", *(argument for argument in arguments if argument not in FLAGS)]
    )
    try:
        return _loop(arguments, options, again)
    except KeyboardInterrupt:
        say(f"interrupted; what is done is kept; go on with {again}")
        return INTERRUPTED


def _loop(arguments: Sequence[str], options: argparse.Namespace, again: str) -> int:
    overrides = [*options.overrides, *(FLAGS[argument] for argument in arguments if argument in FLAGS)]
    overrides += [f"store={options.store}"] if options.store else []
    _check(overrides)

    baseline, store = _compiled("baseline", overrides)
    if not options.yes and any(member.kind == "openai" for member in baseline.spec.route.members):
        each = baseline.spec.k * len(baseline.spec.benchmark.tasks)
        say(
            f"the loop takes up to {counted(each, 'trial')} for the baseline, as many for the guided arm, "
            "and a guide between"
        )
        _ask_or_discard(store)
    end = execute([baseline], store)
    if end.exit_code() not in (0, 1) or not end.arms[0].complete:
        return tell_end(end, store, again)
    folder = execution_named(store, baseline.spec.id)
    output = Path(options.output) if options.output else _default_output(store, folder, options)
    if output.exists():
        say(f"the guide {output} is there; remove it to generate it again")
    else:
        _about_to(shlex.join(_generate_words(store, folder, options, output)))
        output.parent.mkdir(exist_ok=True)
        code = generate(store, folder, options, output, again)
        if not output.exists():
            return code
    words = ("guide=altk", f"guide.file={_quoted(output)}", f"guide.selection={options.selection}")
    guided, _ = _compiled("guided", [*overrides, *words])
    for warning in guided.warnings:
        say(warning)
    _about_to(shlex.join(guided.command))
    second = execute([guided], store)
    arms = [*end.arms, *second.arms]
    return tell_end(SweepEnd(arms, second.stopped, second.interrupted), store, again)


def _ask_or_discard(store: Store) -> None:
    try:
        ask_to_pay()
    except UserError:
        store.discard_if_made_here()
        raise


def _check(overrides: Sequence[str]) -> None:
    for word in overrides:
        name = word.partition("=")[0]
        if name in _FIXED or name.startswith("guide."):
            raise SpecError(f"{name}: the loop chooses arms and guides itself; leave it out")


def _compiled(arm: str, overrides: Sequence[str]) -> tuple[Compiled, Store]:
    words = [f"+arm={arm}", *overrides]
    return compile_plain(compose(words), words)


def _generate_words(
    store: Store, folder: ExecutionFolder, options: argparse.Namespace, output: Path
) -> list[str]:
    """The command that generates the same guide."""
    words = [
        "guide",
        "generate",
        "--from",
        folder.path.name,
        "--method",
        options.method,
        "--runs",
        options.runs,
    ]
    words += ["--samples", str(options.samples)] if options.samples is not None else []
    words += ["--max-rules", str(options.max_rules)] if options.max_rules is not None else []
    flags = ("paper", "samples_from_runs")
    words += [f"--{name.replace('_', '-')}" for name in flags if getattr(options, name)]
    return [*words, "--store", str(store.path), "-o", str(output)]


def _default_output(store: Store, folder: ExecutionFolder, options: object) -> Path:
    """One file for each way to generate from this execution."""
    generation, runs = generation_of(options)  # type: ignore[arg-type]
    sampled = (
        "fast" if generation.method == "fast" else "runs" if generation.from_runs else generation.samples
    )
    rules = getattr(options, "max_rules", None)
    parts = [folder.path.name, str(sampled), "-".join(map(str, runs)), *([f"max{rules}"] if rules else [])]
    return store.path / "guides" / f"{'.'.join(parts)}.json"


def _quoted(path: Path) -> str:
    """A path as a value that Hydra's grammar takes for a text."""
    text = str(path.absolute())
    if re.fullmatch(r"[A-Za-z0-9_./-]+", text):
        return text
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _about_to(command: str) -> None:
    say(f"next: python -m xspec {command}")
