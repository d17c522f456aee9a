"""The per-task values whose means are the figures of an arm.

A task counts when it is complete: at least k valid trials; or, with invalid trials counted as failed, no missing
trial among at least k runs. Every figure of an arm is over the same tasks, so both terms of a gap are.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from xspec.analysis.consistency import (
    Floats,
    OutcomeCode,
    checked_table,
    disagreement_of_tasks,
    gap_of_tasks,
    pass_at,
    pass_hat,
)

Metric = Literal["mean_at_k", "pass_hat_k", "pass_at_k", "gap", "flip_rate", "disagreement"]
METRICS: tuple[Metric, ...] = get_args(Metric)
PAIRWISE: frozenset[Metric] = frozenset({"disagreement"})
"""Metrics that one run says nothing about."""


@dataclass(frozen=True, slots=True)
class TaskFigures:
    """Fractions by complete task (rows, in the order of `tasks`) and metric (columns, in the order of `METRICS`).

    `tasks` holds column numbers of the outcome table, `trials` how many count for each. With a single run the
    column of a pairwise metric is 0 and means nothing: see `defined`.
    """

    k: int
    tasks: NDArray[np.int64]
    values: Floats
    trials: NDArray[np.int64]
    has_valid_trial: bool

    @property
    def defined(self) -> tuple[bool, ...]:
        """By metric, whether its column means anything."""
        paired = bool(self.trials.size and self.trials.min() >= 2)
        return tuple(metric not in PAIRWISE or paired for metric in METRICS)

    def on(self, tasks: NDArray[np.int64]) -> Floats:
        """The values of these tasks, which must be among `self.tasks` (sorted)."""
        return self.values[np.searchsorted(self.tasks, tasks)]


def task_figures(outcomes: ArrayLike, k: int, *, invalid_as_fail: bool = False) -> TaskFigures:
    """The figures of a table of `OutcomeCode`, runs by tasks.

    A table without a valid trial has no score, not even with invalid counted as failed: no task is complete.
    Raises ValueError for what is no outcome table and for k below 1.
    """
    table = checked_table(outcomes, k)
    runs = table.shape[0]
    passes = (table == OutcomeCode.PASS).sum(axis=0)
    valid = (table >= OutcomeCode.FAIL).sum(axis=0)
    has_valid_trial = bool(valid.any())
    if invalid_as_fail:
        missing = (table == OutcomeCode.MISSING).any(axis=0)
        complete = ~missing & (runs >= k) & has_valid_trial
        trials = np.full_like(valid, runs)
    else:
        complete, trials = valid >= k, valid
    c, n = passes[complete], trials[complete]
    enough = n >= 2
    disagreement = np.zeros(len(c))
    disagreement[enough] = disagreement_of_tasks(c[enough], n[enough])
    columns = {
        "mean_at_k": c / n,
        "pass_hat_k": pass_hat(c, n, k),
        "pass_at_k": pass_at(c, n, k),
        "gap": gap_of_tasks(c, n, k),
        "flip_rate": ((c > 0) & (c < n)).astype(np.float64),
        "disagreement": disagreement,
    }
    return TaskFigures(
        k=k,
        tasks=np.flatnonzero(complete),
        values=np.stack([columns[metric] for metric in METRICS], axis=1),
        trials=n,
        has_valid_trial=has_valid_trial,
    )
