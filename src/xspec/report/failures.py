"""Whose doing a trial's end was, and a sample of the trials that did not pass, each with its cause."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from xspec.records.rows import Trial

Blame = Literal["agent", "route", "tool time-out", "worker"]
BLAMES: tuple[Blame, ...] = ("agent", "route", "tool time-out", "worker")
_SAMPLE = 3


@dataclass(frozen=True, slots=True)
class CauseCount:
    """How many trials ended so, and a few of them. `cause` is the token of the trial rows."""

    blame: Blame
    outcome: str
    cause: str
    trials: int
    sample: tuple[Trial, ...]


def blame(cause: str) -> Blame:
    """`verdict`, `step_limit`, `refused` and the like are the agent's; drift and `route:…` the route's."""
    if cause == "drift" or cause.startswith(("route", "retries")):
        return "route"
    if cause == "tool_timeout":
        return "tool time-out"
    if cause in ("worker", "verdict_null"):
        return "worker"
    return "agent"


def failures(trials: Sequence[Trial]) -> tuple[CauseCount, ...]:
    """Counts by cause, the most frequent first, with the first few trials of each by run and task."""
    by_cause: dict[tuple[str, str], list[Trial]] = defaultdict(list)
    for trial in trials:
        if trial.outcome != "pass":
            by_cause[trial.outcome, trial.cause or "unknown"].append(trial)
    found = [
        CauseCount(
            blame(cause),
            outcome,
            cause,
            len(several),
            tuple(sorted(several, key=lambda t: (t.run, t.task))[:_SAMPLE]),
        )
        for (outcome, cause), several in by_cause.items()
    ]
    return tuple(sorted(found, key=lambda c: (-c.trials, c.outcome, c.cause)))
