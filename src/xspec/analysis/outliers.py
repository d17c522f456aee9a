"""Runs that stand out of their arm in retries, tokens or pass share, and what to look at first.

The rule is the modified z-score (Iglewicz and Hoaglin 1993): farther from the median than 3.5 robust standard
deviations, 1.4826 * median absolute deviation. With the few runs of an experiment that deviation is often 0 (four runs
without a retry and one with a single one), so it is held above the spread that chance alone gives: the square root of
the median for retry counts (Poisson), 5% of the median for tokens, run noise for the pass share.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike

from xspec.analysis.consistency import OutcomeCode, checked_table, disagreement_of_tasks
from xspec.analysis.reasons import Reason

THRESHOLD = 3.5
_MIN_RUNS = 3


class LookAt(StrEnum):
    """What to check first."""

    ROUTE = "look at the route before the model"
    MODEL = "look at what came back: served model, reply lengths, steps"
    OUTCOMES = "look at the failures of this run: their causes, and the time they happened"


@dataclass(frozen=True, slots=True)
class RunFigures:
    """One run of an arm. `pass_pct` is over its valid trials, None without any; so are tokens that nobody counted."""

    run: int
    retry_count: int
    total_tokens: int | None
    pass_pct: float | None


@dataclass(frozen=True, slots=True)
class RunOutlier:
    """A run far from the median of its arm; `score` counts robust standard deviations, with sign."""

    run: int
    figure: str
    value: float
    median: float
    score: float
    look_at: LookAt


@dataclass(frozen=True, slots=True)
class RunReview:
    """The runs side by side. `reason` says why no run could be called an outlier."""

    runs: tuple[RunFigures, ...]
    outliers: tuple[RunOutlier, ...]
    reason: Reason | None = None


def review_runs(
    outcomes: ArrayLike, retry_counts: Sequence[int], total_tokens: Sequence[int] | None
) -> RunReview:
    """`outcomes` is a table of `OutcomeCode`, runs by tasks; the others have a number a run. No tokens: unknown.

    Totals are compared between runs without a missing trial: one that is under way has less of everything.
    Raises ValueError when the lengths differ.
    """
    table = checked_table(outcomes, 1)
    passes, valid = (table == OutcomeCode.PASS), table >= OutcomeCode.FAIL
    figures = tuple(
        RunFigures(run, int(retries), tokens, float(100 * won / had) if had else None)
        for run, (retries, tokens, won, had) in enumerate(
            zip(
                retry_counts,
                [None] * len(retry_counts) if total_tokens is None else map(int, total_tokens),
                passes.sum(axis=1),
                valid.sum(axis=1),
                strict=True,
            )
        )
    )
    whole = [run for run in figures if (table[run.run] != OutcomeCode.MISSING).all()]
    numbers = [run.run for run in whole]
    retries = [float(run.retry_count) for run in whole]
    tokens = [float(run.total_tokens) for run in whole if run.total_tokens is not None]
    scored = [run for run in figures if run.pass_pct is not None]
    shares = [run.pass_pct for run in scored if run.pass_pct is not None]
    if max(len(whole), len(scored)) < _MIN_RUNS:
        return RunReview(figures, (), Reason.FEW_RUNS)
    outliers: list[RunOutlier] = []
    if len(whole) >= _MIN_RUNS:
        chance = float(np.sqrt(max(np.median(retries), 1.0)))
        outliers += _outliers("retry_count", numbers, retries, chance, LookAt.ROUTE)
    if len(whole) >= _MIN_RUNS and tokens:
        chance = max(0.05 * float(np.median(tokens)), 1.0)
        outliers += _outliers("total_tokens", numbers, tokens, chance, LookAt.MODEL)
    if len(shares) >= _MIN_RUNS:
        noise = _run_noise_pct(passes.sum(axis=0), valid.sum(axis=0))
        outliers += _outliers("pass_pct", [run.run for run in scored], shares, noise, LookAt.OUTCOMES)
    return RunReview(figures, tuple(outliers))


def _outliers(
    figure: str, runs: Sequence[int], values: Sequence[float], chance: float, look_at: LookAt
) -> list[RunOutlier]:
    numbers = np.asarray(values, dtype=np.float64)
    median = float(np.median(numbers))
    scale = max(1.4826 * float(np.median(np.abs(numbers - median))), chance)
    return [
        RunOutlier(run, figure, value, median, (value - median) / scale, look_at)
        for run, value in zip(runs, values, strict=True)
        if abs(value - median) > THRESHOLD * scale
    ]


def _run_noise_pct(
    passes: np.ndarray[tuple[int], np.dtype[np.int64]], valid: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> float:
    """Standard deviation of one run's pass share by chance: half the disagreement is p(1-p), without bias."""
    twice = valid >= 2
    tasks = max(int(twice.sum()), 1)
    variance = float(disagreement_of_tasks(passes[twice], valid[twice]).sum()) / 2
    # At least one task's worth: where no task ever flipped, a run that misses one is not yet an outlier.
    return float(100 * np.sqrt(max(variance, 1.0)) / tasks)
