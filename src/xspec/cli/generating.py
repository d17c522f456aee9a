"""Generating a guide from the command line: the options, the price, the question, and what is told at the end."""

import argparse
import os
import re
import shlex
import sys
from pathlib import Path
from typing import get_args

from xspec.benchmarks import environments
from xspec.benchmarks.protected import protection_of
from xspec.cli.say import say
from xspec.counted import counted
from xspec.errors import UserError
from xspec.experiment.generate_guide import ENVIRONMENT
from xspec.experiment.generation import GuideGeneration
from xspec.guides.altk_method import PAPER_SAMPLES, Generation, Method
from xspec.guides.guide_file import guide_file_bytes
from xspec.records.executions import ExecutionFolder, executions_of
from xspec.report.write import write_text
from xspec.spec.store import Store

NO_RULES = 1
"""The exit code when no trajectory gave a rule, or some could not be analysed."""

INTERRUPTED = 130
"""The exit code after Ctrl-C."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """How a guide is generated."""
    parser.add_argument(
        "--method", choices=get_args(Method), default="accurate", help="fast: one call, no samples"
    )
    parser.add_argument(
        "--runs", default="0", metavar="R,…", help="runs whose trajectories it is made from (default: 0)"
    )
    parser.add_argument("--samples", type=int, default=None, metavar="N", help="replies a step (default: 5)")
    parser.add_argument("--paper", action="store_true", help=f"{PAPER_SAMPLES} samples, as published")
    parser.add_argument(
        "--samples-from-runs",
        action="store_true",
        help="compare the real runs where they share a beginning, instead of asking for samples",
    )
    parser.add_argument(
        "--max-rules",
        type=int,
        default=None,
        metavar="N",
        help="keep the N rules of the most uncertain trajectories",
    )
    parser.add_argument("--yes", action="store_true", help="don't ask before calls that cost")


def generation_of(options: argparse.Namespace) -> tuple[Generation, list[int]]:
    """The generation and the runs that the options ask for. Raises UserError for what does not go together."""
    if options.max_rules is not None and options.max_rules < 1:
        raise UserError(f"--max-rules {options.max_rules}: give the number of rules to keep, 1 or more")
    chosen = [
        name
        for name, given in (
            ("--samples", options.samples is not None),
            ("--paper", options.paper),
            ("--samples-from-runs", options.samples_from_runs),
        )
        if given
    ]
    if len(chosen) > 1:
        raise UserError(
            f"{chosen[0]} and {chosen[1]} say different things about the samples; give one of them"
        )
    if chosen and options.method == "fast":
        raise UserError(f"{chosen[0]}: the fast method takes no samples; use --method accurate")
    samples = PAPER_SAMPLES if options.paper else options.samples or 5
    if options.samples is not None and not 2 <= options.samples <= 128:
        raise UserError(f"--samples {options.samples}: give 2 to 128; a single reply can't be compared")
    if not re.fullmatch(r"\d{1,4}(,\d{1,4})*", options.runs):
        raise UserError(f"--runs {options.runs!r}: give run numbers like 0 or 0,1,2")
    runs = sorted({int(run) for run in options.runs.split(",")})
    return Generation(options.method, samples, options.samples_from_runs), runs


def generate(
    store: Store, folder: ExecutionFolder, options: argparse.Namespace, output: Path, again: str
) -> int:
    """Generates the guide of an execution into `output`; the exit code. `again` is the command that goes on."""
    generation, runs = generation_of(options)
    if output.exists():
        raise UserError(f"{output} is there already; remove it, or choose another file with -o")
    if not output.parent.is_dir():
        raise UserError(f"{output.parent} is no folder; choose another file with -o")
    if not os.access(output.parent, os.W_OK):
        raise UserError(f"nothing can be written in {output.parent}; choose another file with -o")
    environments.require(ENVIRONMENT)
    work = GuideGeneration(store, folder, generation, runs, output)
    if work.already and not work.finished:
        say(f"going on where it was interrupted: {counted(work.already, 'trajectory')} done")
    if work.finished:
        say(f"from {folder.path.name} ({work.spec.id}): all was asked before; nothing is sent")
    else:
        say(f"from {folder.path.name} ({work.spec.id}): {work.price().text()}")
        if work.costs and not options.yes:
            ask_to_pay()
    try:
        made = work.make(options.max_rules, _tell)
    except KeyboardInterrupt:
        say(
            f"interrupted; {work.already} of {counted(work.wanted, 'trajectory')} done and kept; go on with {again}"
        )
        return INTERRUPTED
    for one in made.failed[:3]:
        say(f"run {one.run} of {one.task} could not be analysed: {one.error}")
    provenance = made.file.provenance
    assert provenance is not None
    measured = provenance.uncertainty
    say(
        f"{counted(provenance.calls or 0, 'call')}, {counted(provenance.attempts or 0, 'attempt')}, "
        f"{provenance.prompt_tokens:,} prompt and "
        f"{provenance.completion_tokens:,} completion tokens; {counted(len(measured), 'step')} measured, "
        f"{sum(step.marked for step in measured)} marked as uncertain"
    )
    if made.found is not None:
        say(made.found.text())
    if not made.file.rules:
        say(
            f"no trajectory gave a rule, so there is no guide. That is kept in {work.kept}, and told again without "
            f"{'asking anew but for what could not be analysed' if made.failed else 'a call'}; to ask anew, remove it "
            "or choose another -o"
        )
        return NO_RULES
    write_text(output, guide_file_bytes(made.file).decode())
    work.finish()
    sources = {task for rule in made.file.rules for task in rule.source_tasks}
    say(f"wrote {output}: {counted(len(made.file.rules), 'rule')} from {counted(len(sources), 'task')}")
    reason = protection_of(work.spec.benchmark.kind)
    if reason is not None:
        say(f"it derives from protected texts, so do not make it public as it is: {reason}")
    say(f"before it is used: python -m xspec guide lint {shlex.quote(str(output))}")
    return NO_RULES if made.failed else 0


def execution_named(store: Store, text: str) -> ExecutionFolder:
    """An execution by its id, or the first whole (else the newest) one of a spec by the spec's id."""
    folders = executions_of(store)
    if not Store.looks_like_id(text):
        found = [folder for folder in folders if folder.path.name == text]
        if not found:
            raise UserError(
                f"no execution {text!r} in {store.path}; `python -m xspec report` lists what there is"
            )
        return found[0]
    spec_id = store.find_spec_id(text)
    own = [folder for folder in folders if folder.info.spec_id == spec_id]
    if not own:
        raise UserError(f"{spec_id} has not been executed yet: python -m xspec reproduce {spec_id}")
    spec = store.spec(spec_id)
    total = spec.k * len(spec.benchmark.tasks)
    return next((folder for folder in own if len(folder.progress().trials) == total), own[-1])


def ask_to_pay() -> None:
    """Returns once a person has agreed to calls that cost. Raises UserError if there is nobody, or if not."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UserError("nothing was sent: these calls cost, and there is no terminal to ask; add --yes")
    print("xspec: these calls cost. Make them? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise UserError("nothing was sent")


def _tell(done: int, total: int) -> None:
    if sys.stderr.isatty():
        print(
            f"\r{done} of {total} trajectories",
            end="\n" if done == total else "",
            file=sys.stderr,
            flush=True,
        )
