"""Confidence intervals of means over tasks in clusters.

The mean over all tasks is a ratio of cluster sums, S/M. Its cluster-robust standard error is that of Miller, "Adding
Error Bars to Evals" (arXiv 2411.00640, appendix A), times G/(G-1). From it come

- *bootstrap-t* (Efron 1981; Hall 1992), for the figures of an arm: clusters are drawn with replacement, each resample
  gives t* = (mean* - mean)/se*, and the quantiles of t* take the place of Student's. Rates near an end of their range
  are skewed, and Student's t covers 89-93% there where this covers 95% and more.
- *cluster-t*: Student's t with G-1 degrees of freedom, for differences: pairing makes them nearly symmetric, and with
  their many zeros it is bootstrap-t that covers 92-93% at 30 tasks. Also for figures with fewer than 10 clusters, and
  where the bootstrap has no finite quantile.
- *exact bound*: when fewer than 5 clusters depart from a common value at the end of the range (all pass, all fail)
  or, for differences, from 0, the spread can't be judged. But if the departing share of clusters is at most u
  (Clopper-Pearson, one-sided; with no departure the rule of three), then the mean is at most u times the range away.
  Conservative, and honest where a standard error of 0 would claim certainty.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from xspec.analysis.consistency import Floats, Ints
from xspec.analysis.distributions import binomial_upper_bound, t_quantile
from xspec.analysis.reasons import Reason
from xspec.analysis.resampling import (
    MIN_CLUSTERS,
    RESAMPLES,
    SEED,
    cluster_numbers,
    cluster_sums,
    resample_counts,
)

Method = Literal["bootstrap-t", "cluster-t", "exact bound"]
"""How an interval came about; the first two can be asked for."""
LEVEL = 0.95
FEW_DEPARTURES = 5


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval in the unit of its estimate."""

    low: float
    high: float
    method: Method
    level: float = LEVEL


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over tasks with its uncertainty. Percent for rates, percentage points for differences.

    Without a value there is no interval either. `reason` says why either is missing, or why the interval is no finer
    than an exact bound. `se` is the cluster-robust standard error. `departing` counts the clusters that differ from
    the common value, where there is one.
    """

    value: float | None
    interval: Interval | None
    se: float | None
    tasks: int
    clusters: int
    reason: Reason | None = None
    departing: int | None = None

    @classmethod
    def undefined(cls, reason: Reason, tasks: int = 0, clusters: int = 0) -> "Estimate":
        """No value, for this reason."""
        return cls(None, None, None, tasks, clusters, reason)


@dataclass(frozen=True, slots=True)
class Range:
    """What a per-task value can be, and the values that many tasks may share, as fractions (1 is 100%)."""

    low: float
    high: float
    common: tuple[float, ...]


RATE = Range(0.0, 1.0, (0.0, 1.0))
DIFFERENCE = Range(-1.0, 1.0, (0.0,))
INTERACTION = Range(-2.0, 2.0, (0.0,))


@dataclass(frozen=True, slots=True)
class ClusterSums:
    """Per-task values, one column a figure, summed by cluster; `sizes` holds the tasks of each cluster."""

    sums: Floats
    sizes: Floats
    means: Floats
    se: Floats

    @property
    def clusters(self) -> int:
        return len(self.sizes)


def summed(values: Floats, numbers: Ints) -> ClusterSums:
    """Sum columns of per-task values by cluster; at least one task. The standard error is 0 with one cluster."""
    clusters = int(numbers.max()) + 1
    sums, sizes = cluster_sums(values, numbers), np.bincount(numbers).astype(np.float64)
    means = values.mean(axis=0)
    residuals = sums - sizes[:, np.newaxis] * means
    variance = (residuals**2).sum(axis=0) / len(values) ** 2 * clusters / max(clusters - 1, 1)
    return ClusterSums(sums, sizes, means, np.sqrt(variance))


def mean_estimates(
    values: Floats,
    clusters: ArrayLike | None,
    value_range: Range = RATE,
    *,
    method: Method = "bootstrap-t",
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> tuple[Estimate, ...]:
    """Estimates of the means of the columns of `values`, tasks by figures, in percent.

    `clusters` has a label a task, or is None if each task is its own cluster. `method` is the one used where the
    data allow it; `resamples` and `seed` matter to bootstrap-t only. Raises ValueError for too few resamples to have
    the quantiles.
    """
    tasks, columns = values.shape
    if not tasks:
        return tuple(Estimate.undefined(Reason.NO_TASKS) for _ in range(columns))
    numbers = cluster_numbers(clusters, tasks)
    total = summed(values, numbers)
    students = np.full((2, columns), np.inf)
    if method == "bootstrap-t" and total.clusters >= MIN_CLUSTERS:
        students = _bootstrap_t(total, level, resamples, seed)
    return tuple(
        _estimate(values[:, j], numbers, total, j, value_range, level, students[:, j]) for j in range(columns)
    )


def _estimate(
    values: Floats,
    numbers: Ints,
    total: ClusterSums,
    column: int,
    value_range: Range,
    level: float,
    students: Floats,
) -> Estimate:
    clusters, tasks = total.clusters, len(values)
    mean, se = float(total.means[column]), float(total.se[column])
    departing, common = min(
        (np.unique(numbers[np.abs(values - common) > 1e-12]).size, common) for common in value_range.common
    )
    interval: Interval | None = None
    reason: Reason | None = None
    if clusters < 2:
        reason = Reason.ONE_CLUSTER
    elif departing < FEW_DEPARTURES and departing < clusters:
        share = binomial_upper_bound(departing, clusters, level)
        low = min(mean, common - share * (common - value_range.low))
        high = max(mean, common + share * (value_range.high - common))
        interval = Interval(100 * low, 100 * high, "exact bound", level)
        reason = Reason.FEW_DEPARTURES if departing else Reason.NO_SPREAD
    elif se <= 1e-12:
        reason = Reason.NO_SPREAD
    else:
        method: Method = "cluster-t"
        lower = upper = t_quantile((1 + level) / 2, clusters - 1)
        if np.isfinite(students).all():
            method, upper, lower = "bootstrap-t", -float(students[0]), float(students[1])
        low, high = max(mean - lower * se, value_range.low), min(mean + upper * se, value_range.high)
        interval = Interval(100 * low, 100 * high, method, level)
    return Estimate(100 * mean, interval, 100 * se, tasks, clusters, reason, departing)


def _bootstrap_t(total: ClusterSums, level: float, resamples: int, seed: int) -> Floats:
    """Lower and upper quantile of t* by column; infinite where resamples without spread reach the quantile."""
    tail = round((1 - level) / 2 * (resamples + 1))
    if tail < 1:
        raise ValueError(f"{resamples} resamples have no quantile beyond {level:g}: take 1,000 or more")
    clusters = total.clusters
    counts = resample_counts(clusters, resamples, seed)
    sizes = total.sizes[:, np.newaxis]
    # Σ w (S - m·mean*)² = Σ w S² - 2 mean* Σ w S m + mean*² Σ w m², so that one product does for all resamples.
    # Taking the mean off first keeps the subtraction from losing digits.
    sums = total.sums - sizes * total.means
    columns = sums.shape[1]
    parts = np.concatenate([sums, sums**2, sums * sizes, sizes, sizes**2], axis=1)
    # Resamples last: each figure's values then lie side by side in memory.
    product = np.ascontiguousarray(parts.T) @ counts.T
    tasks, squared = product[-2], product[-1]
    means = product[:columns] / tasks
    squares = means * squared - 2 * product[2 * columns : 3 * columns]
    squares *= means
    squares += product[columns : 2 * columns]
    spread = np.sqrt(np.maximum(squares, 0) * (clusters / (clusters - 1))) / tasks
    flat = spread <= 1e-9
    spread[flat] = 1.0
    students = means / spread
    if flat.any():
        still = np.abs(means[flat]) <= 1e-9
        students[flat] = np.where(still, 0.0, np.copysign(np.inf, means[flat]))
    students.partition((tail - 1, resamples - tail), axis=1)
    return np.stack([students[:, tail - 1], students[:, resamples - tail]])
