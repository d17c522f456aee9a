"""The power of a planned comparison, by simulation with the test actually used.

Rates are drawn for each simulated experiment, both arms run k times on the same tasks, and the sign-flip test with
clusters decides. What the other arm changes is assumed, in one of two ways:

- *fewer failures*: it saves an even share e of the trials that fail, 1 - p' = (1-p)(1-e); a task that never passes
  (p = 0) stays so. Assumed for Mean@k and Pass^k.
- *steadier*: each task goes toward what it mostly does, logit p' = logit p / (1-e). Mean@k hardly moves, the gap
  closes. Assumed for the gap, since what is published moved so: 24.4 to 12.0 points with Mean@5 3.6 points higher.

The strength e that moves the metric by D points is sought first.
"""

from dataclasses import dataclass
from math import sqrt
from typing import Literal

import numpy as np

from xspec.analysis.consistency import Floats, Ints
from xspec.analysis.detectable import ALPHA, POWER
from xspec.analysis.permutation import sign_flip_p
from xspec.analysis.rates import DrawnRates, RateSource
from xspec.analysis.reasons import Reason
from xspec.analysis.resampling import MIN_CLUSTERS, SEED

PlannedMetric = Literal["mean_at_k", "pass_hat_k", "gap"]
Change = Literal["fewer failures", "steadier"]
CHANGES: dict[PlannedMetric, Change] = {
    "mean_at_k": "fewer failures",
    "pass_hat_k": "fewer failures",
    "gap": "steadier",
}
"""What is assumed unless told otherwise."""

EXPERIMENTS = 4_000
# Enough to place a p-value beside 0.05; the test of a report draws more, which changes power by tenths of a point.
_FLIPS = 999
_EXPECTATION_DRAWS = 40_000


@dataclass(frozen=True, slots=True)
class Power:
    """The chance to find a difference of `difference_pp` points; `se` is the simulation's own error.

    `expected_before` and `expected_after` are the metric in percent without and with the effect. Undefined with a
    reason: too few clusters for a p-value, or no effect that large.
    """

    metric: PlannedMetric
    difference_pp: float
    tasks: int
    clusters: int
    k: int
    power: float | None
    se: float | None
    reason: Reason | None = None
    expected_before: float | None = None
    expected_after: float | None = None


@dataclass(frozen=True, slots=True)
class Detectable:
    """The difference in points that an experiment of this size finds with the wanted power."""

    metric: PlannedMetric
    tasks: int
    k: int
    difference_pp: float | None
    reason: Reason | None = None


class Simulation:
    """Experiments on tasks from one source, with one seed: asked twice it answers the same."""

    def __init__(
        self,
        source: RateSource,
        *,
        alpha: float = ALPHA,
        contrasts: int = 1,
        change: Change | None = None,
        experiments: int = EXPERIMENTS,
        seed: int = SEED,
    ) -> None:
        """`contrasts` counts the tests that share alpha; the most demanding step of Holm is alpha/contrasts.
        `change` is what the other arm is assumed to do, by default that of `CHANGES`.

        Raises ValueError for an alpha outside 0…1 or fewer than one contrast.
        """
        if not 0 < alpha < 1 or contrasts < 1:
            raise ValueError(f"alpha is between 0 and 1, contrasts at least 1, not {alpha:g} and {contrasts}")
        self._source, self._alpha = source, alpha / contrasts
        self._change, self._experiments, self._seed = change, experiments, seed
        clusters = max(1, round(_EXPECTATION_DRAWS / source.cluster_size))
        self._many = source.draw(np.random.default_rng(seed), 1, clusters)

    @property
    def cluster_size(self) -> float:
        """Mean number of tasks in a cluster."""
        return self._source.cluster_size

    def power(self, metric: PlannedMetric, difference_pp: float, tasks: int, k: int) -> Power:
        """The power for one size of experiment. `tasks` is rounded to whole clusters.

        Raises ValueError for a difference, tasks or k that is not above 0, and for a gap at k = 1, which is 0.
        """
        _check(metric, difference_pp, tasks, k)
        clusters = max(1, round(tasks / self.cluster_size))
        nothing = Power(metric, difference_pp, tasks, clusters, k, None, None)
        if clusters < MIN_CLUSTERS:
            return _without(nothing, Reason.FEW_CLUSTERS)
        effect = self.effect(metric, difference_pp, k)
        if effect is None:
            return _without(nothing, Reason.UNREACHABLE)
        found = self._share_found(metric, effect, clusters, k)
        return Power(
            metric=metric,
            difference_pp=difference_pp,
            tasks=tasks,
            clusters=clusters,
            k=k,
            power=found,
            se=sqrt(max(found * (1 - found), 1 / self._experiments) / self._experiments),
            expected_before=self._expected(metric, 0.0, k),
            expected_after=self._expected(metric, effect, k),
        )

    def detectable(self, metric: PlannedMetric, tasks: int, k: int, power: float = POWER) -> Detectable:
        """The smallest difference found with this power, to a tenth of a point or so."""
        _check(metric, 1.0, tasks, k)
        clusters = max(1, round(tasks / self.cluster_size))
        if clusters < MIN_CLUSTERS:
            return Detectable(metric, tasks, k, None, Reason.FEW_CLUSTERS)
        low, high = 0.0, self._largest(metric, k)
        if high <= 0 or self._found_at(metric, high, clusters, k) < power:
            return Detectable(metric, tasks, k, None, Reason.UNREACHABLE)
        while high - low > 0.1:
            middle = (low + high) / 2
            if self._found_at(metric, middle, clusters, k) < power:
                low = middle
            else:
                high = middle
        return Detectable(metric, tasks, k, high)

    def _found_at(self, metric: PlannedMetric, difference_pp: float, clusters: int, k: int) -> float:
        effect = self.effect(metric, difference_pp, k)
        return 1.0 if effect is None else self._share_found(metric, effect, clusters, k)

    def _share_found(self, metric: PlannedMetric, effect: float, clusters: int, k: int) -> float:
        random = np.random.default_rng((self._seed, clusters, k))
        drawn = self._source.draw(random, self._experiments, clusters)
        changed = changed_rates(drawn.rates, effect, self._change or CHANGES[metric])
        values = [_observed(metric, rates, k, random) for rates in (drawn.rates, changed)]
        sums = ((values[1] - values[0]) * drawn.present).sum(axis=2).T
        p = sign_flip_p(np.ascontiguousarray(sums), _FLIPS, self._seed)
        return float((p <= self._alpha).mean())

    def _expected(self, metric: PlannedMetric, effect: float, k: int) -> float:
        return _expected_pct(metric, self._many, effect, k, self._change or CHANGES[metric])

    def _largest(self, metric: PlannedMetric, k: int) -> float:
        before = self._expected(metric, 0.0, k)
        changes = [
            abs(self._expected(metric, e, k) - before) for e in _EFFECTS if self._right_way(metric, e, k)
        ]
        return max(changes, default=0.0)

    def _right_way(self, metric: PlannedMetric, effect: float, k: int) -> bool:
        change = self._expected(metric, effect, k) - self._expected(metric, 0.0, k)
        return change < 0 if metric == "gap" else change > 0

    def effect(self, metric: PlannedMetric, difference_pp: float, k: int) -> float | None:
        """The least strength that moves the metric so far, up or for the gap down; None if none does."""
        sign = -1.0 if metric == "gap" else 1.0
        before = self._expected(metric, 0.0, k)

        def short(effect: float) -> float:
            return difference_pp - sign * (self._expected(metric, effect, k) - before)

        # The gap can widen before it narrows, so the first crossing on a grid is refined.
        high = next((effect for effect in _EFFECTS if short(effect) <= 1e-9), None)
        if high is None:
            return None
        low = max((effect for effect in _EFFECTS if effect < high), default=0.0)
        for _ in range(12):
            middle = (low + high) / 2
            low, high = (middle, high) if short(middle) > 0 else (low, middle)
        return high


_EFFECTS: tuple[float, ...] = tuple(step / 20 for step in range(1, 21))


def changed_rates(rates: Floats, effect: float, change: Change) -> Floats:
    """Pass rates in the other arm. `effect` goes from 0, no change, to 1, no failure or no inconsistency left."""
    if change == "fewer failures":
        return np.asarray(np.where(rates > 0, 1 - (1 - rates) * (1 - effect), 0.0), dtype=np.float64)
    power = 1 / max(1 - effect, 1e-3)
    passing, failing = rates**power, (1 - rates) ** power
    return np.asarray(passing / (passing + failing), dtype=np.float64)


def _observed(metric: PlannedMetric, rates: Floats, k: int, random: np.random.Generator) -> Floats:
    """The metric's per-task value in one simulated arm."""
    passes: Ints = np.asarray(random.binomial(k, rates), dtype=np.int64)
    share: Floats = passes / k
    always: Floats = (passes == k).astype(np.float64)
    values: dict[PlannedMetric, Floats] = {"mean_at_k": share, "pass_hat_k": always, "gap": share - always}
    return values[metric]


def _expected_pct(metric: PlannedMetric, drawn: DrawnRates, effect: float, k: int, change: Change) -> float:
    rates = changed_rates(drawn.rates, effect, change)
    always = rates**k
    value = {"mean_at_k": rates, "pass_hat_k": always, "gap": rates - always}[metric]
    return float(100 * (value * drawn.present).sum() / drawn.present.sum())


def _without(nothing: Power, reason: Reason) -> Power:
    return Power(
        nothing.metric, nothing.difference_pp, nothing.tasks, nothing.clusters, nothing.k, None, None, reason
    )


def _check(metric: PlannedMetric, difference_pp: float, tasks: int, k: int) -> None:
    if difference_pp <= 0 or tasks < 1 or k < 1:
        raise ValueError(f"difference, tasks and k are above 0, not {difference_pp:g}, {tasks} and {k}")
    if metric == "gap" and k == 1:
        raise ValueError("at k = 1 there is no gap: Mean@1 is Pass^1")
