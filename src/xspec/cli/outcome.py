"""What a command says when it is done: the report of its arms, what stopped it, and how to go on."""

import shlex
from collections import Counter

from xspec.cli.projection import bring_up_to_date
from xspec.cli.say import say
from xspec.counted import counted
from xspec.errors import XspecError
from xspec.experiment.execute import ArmEnd, SweepEnd
from xspec.report.build import build_report
from xspec.report.load import load_records
from xspec.report.output import Output
from xspec.report.table import print_report
from xspec.spec.store import Store


def tell_end(end: SweepEnd, store: Store, again: str | None = None) -> int:
    """Prints the report to standard output and everything else to standard error; returns the exit code.

    `again` is the command that goes on, where it is another than the arms' own.
    """
    ids = [arm.compiled.spec.id for arm in end.arms]
    unreported = 0
    if any(arm.trials for arm in end.arms):
        try:
            print_report(build_report(load_records(store, spec_ids=ids)), Output())
        except XspecError as error:
            # A disk that is full now must not hide why the arms stopped, nor how to go on.
            say(f"no report: {error}")
            unreported = error.exit_code
    for arm in end.arms:
        name = f"{arm.compiled.spec.id}{f' ({arm.compiled.arm})' if arm.compiled.arm else ''}"
        if arm.already_finished:
            say(f"{name} was finished before; nothing was sent")
            say(f"to execute it again: python -m xspec reproduce {arm.compiled.spec.id}")
        elif not arm.complete:
            expected = arm.compiled.spec.k * len(arm.compiled.spec.benchmark.tasks)
            say(f"{name}: {len(arm.trials)} of {counted(expected, 'trial')} finished")
        elif arm.exit_code() == 1:
            say(f"{name}: {_why_invalid(arm)}")
    if end.interrupted:
        say(f"interrupted; go on with {again or _command(end)}")
    elif end.stopped is not None:
        say(f"stopped: {end.stopped}")
        say(f"once that is mended, go on with {again or _command(end)}")
    bring_up_to_date(store)
    return end.exit_code() or unreported


def _why_invalid(arm: ArmEnd) -> str:
    """How many trials are invalid, and what the commonest kind of them said."""
    invalid = [trial for trial in arm.trials if trial.outcome == "invalid"]
    commonest = Counter(trial.cause for trial in invalid).most_common(1)[0][0]
    detail = next((trial.detail for trial in invalid if trial.cause == commonest and trial.detail), None)
    return (
        f"{len(invalid)} of {counted(len(arm.trials), 'trial')} invalid, most by {commonest}"
        f"{f' ({detail})' if detail else ''}; once that is mended, --retry-invalid runs them again"
    )


def _command(end: SweepEnd) -> str:
    commands = {arm.compiled.command for arm in end.arms if arm.compiled.command}
    return (
        shlex.join(["python", "-m", "xspec", *commands.pop()]) if len(commands) == 1 else "the same command"
    )
