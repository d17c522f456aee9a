"""What the experiment at hand could have seen: the minimum detectable effect.

The true difference that a two-sided cluster-t test at level alpha would find with the wanted power, given the
standard error observed: (t(1 - alpha/2) + t(power)) * se with G-1 degrees (Bloom 1995, Evaluation Review 19).
It belongs beside every comparison: "no difference found" says nothing about smaller ones.
"""

from xspec.analysis.distributions import t_quantile
from xspec.analysis.intervals import Estimate
from xspec.analysis.reasons import Figure, Reason
from xspec.analysis.resampling import MIN_CLUSTERS

ALPHA = 0.05
POWER = 0.8


def minimum_detectable_pp(difference: Estimate, alpha: float = ALPHA, power: float = POWER) -> Figure:
    """In percentage points. Undefined without a standard error to go by."""
    if difference.se is None or difference.value is None:
        return Figure.undefined(difference.reason or Reason.NO_TASKS)
    if difference.clusters < MIN_CLUSTERS:
        return Figure.undefined(Reason.FEW_CLUSTERS)
    if difference.reason is not None:
        return Figure.undefined(difference.reason)
    degrees = difference.clusters - 1
    return Figure((t_quantile(1 - alpha / 2, degrees) + t_quantile(power, degrees)) * difference.se)
