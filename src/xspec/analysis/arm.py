"""The figures of one arm with their intervals, over all tasks and by group of tasks."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from xspec.analysis.consistency import Consistency, checked_table, consistency
from xspec.analysis.intervals import Estimate, mean_estimates
from xspec.analysis.reasons import Reason
from xspec.analysis.resampling import RESAMPLES, SEED
from xspec.analysis.task_figures import METRICS, Metric, TaskFigures, task_figures


@dataclass(frozen=True, slots=True)
class ArmFigures:
    """`figures` holds the plain numbers and which tasks were left out; the mappings hold estimates by metric.

    `valid_only` is over the tasks with k valid trials, `invalid_as_fail` over those without a missing one.
    """

    figures: Consistency
    valid_only: Mapping[Metric, Estimate]
    invalid_as_fail: Mapping[Metric, Estimate]


def arm_figures(
    outcomes: ArrayLike,
    k: int,
    clusters: ArrayLike | None = None,
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> ArmFigures:
    """The figures of a table of `OutcomeCode`, runs by tasks; `clusters` has a label a task.

    Raises ValueError for what is no outcome table.
    """
    labels = None if clusters is None else np.asarray(clusters)
    valid_only, as_fail = (
        _estimates(task_figures(outcomes, k, invalid_as_fail=flag), labels, resamples, seed)
        for flag in (False, True)
    )
    return ArmFigures(consistency(outcomes, k), valid_only, as_fail)


def figures_by_group(
    outcomes: ArrayLike,
    k: int,
    groups: ArrayLike,
    clusters: ArrayLike | None = None,
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> dict[str, ArmFigures]:
    """The same by stratum or difficulty: `groups` has a label a task, in the order of first appearance."""
    table, labels = checked_table(outcomes, k), np.asarray(groups, dtype=np.str_)
    if labels.shape != (table.shape[1],):
        raise ValueError(f"one group label a task: {table.shape[1]} tasks, labels of shape {labels.shape}")
    of_cluster = None if clusters is None else np.asarray(clusters)
    return {
        str(label): arm_figures(
            table[:, labels == label],
            k,
            None if of_cluster is None else of_cluster[labels == label],
            resamples=resamples,
            seed=seed,
        )
        for label in dict.fromkeys(labels.tolist())
    }


def _estimates(
    figures: TaskFigures,
    labels: np.ndarray[tuple[int, ...], np.dtype[np.generic]] | None,
    resamples: int,
    seed: int,
) -> dict[Metric, Estimate]:
    kept = None if labels is None else labels[figures.tasks]
    if not figures.has_valid_trial:
        return {metric: Estimate.undefined(Reason.NO_VALID_TRIAL) for metric in METRICS}
    found = mean_estimates(figures.values, kept, resamples=resamples, seed=seed)
    return {
        metric: estimate if defined or estimate.value is None else Estimate.undefined(Reason.ONE_RUN)
        for metric, estimate, defined in zip(METRICS, found, figures.defined, strict=True)
    }
