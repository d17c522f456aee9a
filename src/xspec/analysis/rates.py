"""Where the pass rates of simulated tasks come from: assumed, or estimated from a stored execution.

A source draws whole clusters, as experiments on *tasks like these* would. Rates are arrays (experiments, clusters,
tasks of a cluster); where clusters differ in size a mask says which places hold a task.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from xspec.analysis.consistency import Floats, Ints, OutcomeCode, checked_table
from xspec.analysis.resampling import cluster_numbers


@dataclass(frozen=True, slots=True)
class DrawnRates:
    """Pass rates, and 1 where there is a task, 0 where a smaller cluster leaves the place empty."""

    rates: Floats
    present: Floats


class RateSource(Protocol):
    """Draws pass rates of tasks."""

    @property
    def cluster_size(self) -> float:
        """Mean number of tasks in a cluster."""

    def draw(self, random: np.random.Generator, experiments: int, clusters: int) -> DrawnRates:
        """Rates of so many clusters in so many experiments."""


@dataclass(frozen=True, slots=True)
class BetaRates:
    """Rates from a Beta. In a cluster each task has the cluster's rate with chance `shared`, else its own.

    So every task's rate has exactly this Beta, and two of a cluster correlate by shared². Expectations of figures
    are then those of the Beta, in closed form. Raises ValueError for parameters out of range.
    """

    alpha: float
    beta: float
    tasks_per_cluster: int = 1
    shared: float = 0.0

    def __post_init__(self) -> None:
        if not (self.alpha > 0 and self.beta > 0 and self.tasks_per_cluster > 0 and 0 <= self.shared <= 1):
            raise ValueError(f"Beta parameters and cluster size are above 0, `shared` from 0 to 1: {self}")

    @classmethod
    def from_mean(
        cls, mean: float, spread: float = 1.0, *, tasks_per_cluster: int = 1, shared: float = 0.0
    ) -> "BetaRates":
        """With this mean; `spread` is alpha + beta: below 1 most tasks always pass or fail, above few do."""
        return cls(mean * spread, (1 - mean) * spread, tasks_per_cluster, shared)

    @property
    def cluster_size(self) -> float:
        return float(self.tasks_per_cluster)

    def draw(self, random: np.random.Generator, experiments: int, clusters: int) -> DrawnRates:
        shape = (experiments, clusters, self.tasks_per_cluster)
        rates = random.beta(self.alpha, self.beta, shape)
        if self.tasks_per_cluster > 1 and self.shared:
            common = random.beta(self.alpha, self.beta, (experiments, clusters, 1))
            rates = np.where(random.random(shape) < self.shared, common, rates)
        return DrawnRates(rates, np.ones((1, clusters, self.tasks_per_cluster)))

    def power_mean(self, exponent: int) -> float:
        """Expectation of rate^exponent; Mean@k is that of 1, Pass^k that of k."""
        steps = np.arange(exponent)
        return float(np.prod((self.alpha + steps) / (self.alpha + self.beta + steps)))


class GivenRates:
    """Known or assumed rates, one a task, drawn with replacement by whole clusters."""

    def __init__(self, rates: ArrayLike, clusters: ArrayLike | None = None) -> None:
        """Raises ValueError for no rates, or rates outside 0…1."""
        self._rates = np.asarray(rates, dtype=np.float64)
        if (
            self._rates.ndim != 1
            or not self._rates.size
            or not ((self._rates >= 0) & (self._rates <= 1)).all()
        ):
            raise ValueError("pass rates are a list of numbers from 0 to 1, one a task")
        self._members, self._present = _by_cluster(cluster_numbers(clusters, self._rates.size))

    @property
    def cluster_size(self) -> float:
        return float(self._present.sum(axis=1).mean())

    def draw(self, random: np.random.Generator, experiments: int, clusters: int) -> DrawnRates:
        chosen = random.integers(0, len(self._members), (experiments, clusters))
        return DrawnRates(self._rates_of(random, self._members[chosen]), self._present[chosen])

    def _rates_of(self, random: np.random.Generator, tasks: Ints) -> Floats:
        return self._rates[tasks]


class StoredRates(GivenRates):
    """The rates behind a stored execution's outcomes.

    The raw shares c/n would overstate how much tasks differ (five of five passes is not a rate of 1) and understate
    the gap. So a Beta is fitted to the counts by factorial moments, and each task's rate drawn from its posterior,
    Beta(alpha + c, beta + n - c): empirical Bayes for the beta-binomial (Kleinman 1973, JASA 68).
    """

    def __init__(self, outcomes: ArrayLike, clusters: ArrayLike | None = None) -> None:
        """From a table of `OutcomeCode`, runs by tasks. Tasks without a valid trial are left out.

        Raises ValueError when no task has a valid trial.
        """
        table = checked_table(outcomes, 1)
        passes = (table == OutcomeCode.PASS).sum(axis=0)
        valid = (table >= OutcomeCode.FAIL).sum(axis=0)
        some = valid > 0
        if not some.any():
            raise ValueError("no valid trial to estimate pass rates from")
        labels = None if clusters is None else np.asarray(clusters)[some]
        self._passes, self._valid = passes[some], valid[some]
        super().__init__(self._passes / self._valid, labels)
        self.alpha, self.beta = fit_beta(self._passes, self._valid)

    def _rates_of(self, random: np.random.Generator, tasks: Ints) -> Floats:
        passes = self._passes[tasks]
        drawn: Floats = random.beta(self.alpha + passes, self.beta + self._valid[tasks] - passes)
        return drawn


def fit_beta(passes: Ints, valid: Ints) -> tuple[float, float]:
    """Beta parameters with the mean and the variance of rates that the counts show, run noise taken off.

    From the unbiased moments c/n and c(c-1)/(n(n-1)). Where no task has two trials, or none differ, alpha + beta
    is held between 0.05 and 1000.
    """
    mean = (float(passes.sum()) + 0.5) / (float(valid.sum()) + 1)
    twice = valid >= 2
    size = 1000.0
    if twice.any():
        c, n = passes[twice], valid[twice]
        first = float((c / n).mean())
        variance = float((c * (c - 1) / (n * (n - 1))).mean()) - first**2
        if variance > 0:
            size = float(np.clip(first * (1 - first) / variance - 1, 0.05, 1000.0))
    return mean * size, (1 - mean) * size


def _by_cluster(numbers: Ints) -> tuple[NDArray[np.int64], Floats]:
    """Task numbers by cluster, padded with the cluster's first, and where they count."""
    sizes = np.bincount(numbers)
    order = np.argsort(numbers, kind="stable")
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    place = np.arange(sizes.max())
    present = place < sizes[:, np.newaxis]
    return order[starts[:, np.newaxis] + np.where(present, place, 0)], present.astype(np.float64)
