"""The few distribution functions that the statistics need.

From scipy.special, not scipy.stats, whose import alone takes longer than the whole analysis.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtr, betaincinv, ndtr, stdtr, stdtrit  # type: ignore[import-untyped]


def t_quantile(p: float, degrees: int) -> float:
    """The value below which Student's t with these degrees of freedom lies with chance p."""
    return float(stdtrit(degrees, p))


def t_tail(value: ArrayLike, degrees: int) -> NDArray[np.float64]:
    """The chance that Student's t exceeds `value`."""
    return np.asarray(stdtr(degrees, -np.asarray(value, dtype=np.float64)), dtype=np.float64)


def normal_two_sided(z: float) -> float:
    """The chance that a standard normal is farther from 0 than z."""
    return float(2.0 * ndtr(-abs(z)))


def binomial_at_most(successes: int, trials: int, chance: float) -> float:
    """The chance of at most so many successes."""
    return float(bdtr(successes, trials, chance))


def binomial_upper_bound(successes: int, trials: int, level: float) -> float:
    """One-sided upper confidence bound of a share (Clopper and Pearson 1934)."""
    if successes >= trials:
        return 1.0
    return float(betaincinv(successes + 1, trials - successes, level))
