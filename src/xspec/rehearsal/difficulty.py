"""How hard each task is for the simulated model: fixed for a task by the difficulty seed alone."""

import math
from dataclasses import dataclass

from xspec.rehearsal.draws import pick, uniform
from xspec.rehearsal.scripts import TaskScript
from xspec.spec.members import RehearsalBehaviour


@dataclass(frozen=True, slots=True)
class Difficulty:
    """`flip` is the chance that a trial flips at the call index `point`; `point` is None if none can.

    A hopeless task flips always, and no guide helps it.
    """

    flip: float
    point: int | None
    hopeless: bool = False

    def flip_chance(self, guided: bool, guide_effect: float) -> float:
        """The flip chance with or without a guide that covers the point."""
        return self.flip * (1 - guide_effect) if guided and not self.hopeless else self.flip


STABLE = Difficulty(0.0, None)


def difficulty_of(behaviour: RehearsalBehaviour, script: TaskScript) -> Difficulty:
    """The task's difficulty.

    The draws depend on the seed and the task id only, so that other shares or another Beta shift difficulties
    instead of dealing them anew.
    """
    if not script.points:
        return STABLE
    place = (behaviour.difficulty_seed, script.task)
    point = pick(script.points, *place, "point")
    kind = uniform(*place, "kind")
    if kind < behaviour.hopeless_tasks:
        return Difficulty(1.0, point, hopeless=True)
    if kind < behaviour.hopeless_tasks + behaviour.unstable_tasks:
        flip = beta_quantile(uniform(*place, "flip"), behaviour.flip_alpha, behaviour.flip_beta)
        return Difficulty(flip, point)
    return STABLE


def beta_quantile(p: float, alpha: float, beta: float) -> float:
    """The value below which a Beta(alpha, beta) lies with chance `p`, to about 1e-15, by bisection.

    Plain Python, so that the server process needs no SciPy, which would double its start-up time.
    """
    low, high = 0.0, 1.0
    for _ in range(52):
        middle = (low + high) / 2
        if beta_cdf(middle, alpha, beta) < p:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def beta_cdf(x: float, alpha: float, beta: float) -> float:
    """The regularised incomplete beta function, by its continued fraction (Abramowitz & Stegun 26.5.8)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    # The fraction converges fast on this side of the mean only; the other side is its mirror image.
    if x > (alpha + 1) / (alpha + beta + 2):
        return 1 - beta_cdf(1 - x, beta, alpha)
    log_front = alpha * math.log(x) + beta * math.log1p(-x) - math.log(alpha)
    log_beta = math.lgamma(alpha) + math.lgamma(beta) - math.lgamma(alpha + beta)
    return math.exp(log_front - log_beta) / _continued_fraction(x, alpha, beta)


def _continued_fraction(x: float, alpha: float, beta: float) -> float:
    """1 + d1/(1 + d2/(1 + …)), evaluated from the far end; the number of terms grows with the parameters."""
    value = 1.0
    for m in range(60 + int(2 * math.sqrt(max(alpha, beta))), 0, -1):
        even = m * (beta - m) * x / ((alpha + 2 * m - 1) * (alpha + 2 * m))
        odd = -(alpha + m) * (alpha + beta + m) * x / ((alpha + 2 * m) * (alpha + 2 * m + 1))
        value = 1 + even / (1 + odd / value)
    return 1 + (-(alpha + beta) * x / (alpha + 1)) / value
