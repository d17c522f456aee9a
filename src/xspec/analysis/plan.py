"""How many tasks and runs an experiment needs, and what it costs in trials, calls and tokens."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from xspec.analysis.detectable import POWER
from xspec.analysis.power import PlannedMetric, Power, Simulation
from xspec.analysis.reasons import Reason
from xspec.analysis.resampling import MIN_CLUSTERS

MAX_TASKS = 3_000


@dataclass(frozen=True, slots=True)
class Usage:
    """Mean calls and tokens of one trial."""

    calls: float
    prompt_tokens: float
    completion_tokens: float

    @classmethod
    def of_trials(cls, calls: ArrayLike, prompt_tokens: ArrayLike, completion_tokens: ArrayLike) -> "Usage":
        """From stored trials, a number a trial. Raises ValueError when there is none."""
        columns = [
            np.asarray(values, dtype=np.float64) for values in (calls, prompt_tokens, completion_tokens)
        ]
        if not all(column.size for column in columns):
            raise ValueError("no stored trial to price by")
        return cls(*(float(column.mean()) for column in columns))


@dataclass(frozen=True, slots=True)
class Cost:
    """What an experiment takes. Calls and tokens are None without stored usage."""

    trials: int
    calls: int | None
    prompt_tokens: int | None
    completion_tokens: int | None


@dataclass(frozen=True, slots=True)
class Need:
    """The fewest tasks at this k; `tasks` is None with a reason. `power` is that of the experiment so found."""

    metric: PlannedMetric
    difference_pp: float
    k: int
    tasks: int | None
    power: Power | None
    cost: Cost | None
    reason: Reason | None = None


def price(tasks: int, k: int, arms: int, usage: Usage | None) -> Cost:
    """The cost of `arms` arms of k runs over the tasks."""
    trials = tasks * k * arms
    if usage is None:
        return Cost(trials, None, None, None)
    calls, prompt, completion = (
        round(trials * each) for each in (usage.calls, usage.prompt_tokens, usage.completion_tokens)
    )
    return Cost(trials, calls, prompt, completion)


def needed(
    simulation: Simulation,
    metric: PlannedMetric,
    difference_pp: float,
    ks: Sequence[int],
    *,
    power: float = POWER,
    arms: int = 2,
    usage: Usage | None = None,
    max_tasks: int = MAX_TASKS,
) -> tuple[Need, ...]:
    """For each k the fewest tasks (in whole clusters) that find the difference with this power.

    Bisection over simulated powers, whose own error of about a point makes the answer good to a few percent.
    """
    return tuple(_need(simulation, metric, difference_pp, k, power, arms, usage, max_tasks) for k in ks)


def _need(
    simulation: Simulation,
    metric: PlannedMetric,
    difference_pp: float,
    k: int,
    wanted: float,
    arms: int,
    usage: Usage | None,
    max_tasks: int,
) -> Need:
    cluster_size = simulation.cluster_size

    def at(clusters: int) -> Power:
        return simulation.power(metric, difference_pp, round(clusters * cluster_size), k)

    low, high = MIN_CLUSTERS - 1, MIN_CLUSTERS
    found = at(high)
    if found.power is None:
        return Need(metric, difference_pp, k, None, None, None, found.reason)
    while found.power is not None and found.power < wanted:
        if high * cluster_size > max_tasks:
            return Need(metric, difference_pp, k, None, None, None, Reason.TOO_MANY_TASKS)
        low, high = high, 2 * high
        found = at(high)
    # A step of 2% is finer than the simulated power can tell apart.
    while high - low > max(1, high // 50):
        middle = (low + high) // 2
        tried = at(middle)
        if tried.power is not None and tried.power < wanted:
            low = middle
        else:
            high, found = middle, tried
    return Need(metric, difference_pp, k, found.tasks, found, price(found.tasks, k, arms, usage))
