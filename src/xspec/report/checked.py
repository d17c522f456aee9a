"""What the checks of counts, runs and routes found, in sentences."""

from collections.abc import Iterator

from xspec.counted import counted
from xspec.report.model import Arm, Group
from xspec.report.sentence import Sentence, some


def differ(group: Group, names: dict[str, str]) -> Iterator[Sentence]:
    """On request only: specs compared that differ in more than factors."""
    for a, b, fields in group.differences:
        listed = some([str(diff) for diff in fields], "field", "; ")
        yield Sentence(
            f"{names[a]} and {names[b]} differ in more than factors, so a difference between them may be due to "
            f"that: {listed}.",
            warning=True,
        )


def counts(arm: Arm, name: str) -> Iterator[Sentence]:
    counts = arm.statistics.reconciliation
    if not counts.agrees:
        yield Sentence(
            f"{name}: the counts do not agree: {counts.trials_counted} of {counted(counts.trials_expected, 'trial')}, "
            f"{counted(counts.calls, 'call')} against {counts.ledger_calls} in the ledger, "
            f"{counted(counts.attempts, 'attempt')} against {counts.ledger_attempts}. Was a journal changed?",
            warning=True,
        )
    if counts.idle_passes:
        yield Sentence(
            f"{name}: {counted(counts.idle_passes, 'trial')} passed without a single tool call. A task that passes "
            "without work measures nothing."
        )


def outlier_runs(arm: Arm, name: str) -> Iterator[Sentence]:
    """Runs that lie far from the others of their arm, and what to look at first."""
    for one in arm.statistics.review.outliers:
        what = {"retry_count": " retries", "total_tokens": " tokens", "pass_pct": "% passed"}[one.figure]
        yield Sentence(
            f"{name}: run {one.run} stands out with {one.value:,.0f}{what} (median {one.median:,.0f}): {one.look_at}.",
            warning=True,
        )


def attributed(arm: Arm, name: str) -> Iterator[Sentence]:
    for one in arm.statistics.attribution:
        interval, ratio = one.hazard_ratio_interval, one.hazard_ratio.value
        if one.kind != "any" or interval is None or ratio is None or interval[0] <= 1:
            continue
        share = one.attributable_share.value
        part = "" if share is None else f"; {100 * share:.0f}% of partings go with such an event"
        yield Sentence(
            f"{name}: runs of a task part {ratio:.1f} times as often right after an infrastructure event "
            f"(95% interval {interval[0]:.1f} to {interval[1]:.1f}{part}). Associated, not proven the cause.",
            warning=True,
        )
