"""Claiming "no change": two one-sided tests against a stated margin (Schuirmann 1987; TOST).

"Not significant" is no evidence of sameness. The claim |difference| < margin is made when both one-sided cluster-t
tests, of "at most -margin" and "at least +margin", reject. Where too few clusters differ at all for a standard
error, the number that do is tested instead: were the difference as large as the margin, at least that share of
clusters would have to differ.
"""

from xspec.analysis.distributions import binomial_at_most, t_tail
from xspec.analysis.intervals import FEW_DEPARTURES, Estimate
from xspec.analysis.reasons import Figure, Reason
from xspec.analysis.resampling import MIN_CLUSTERS


def equivalence_p(difference: Estimate, margin_pp: float | None, range_pp: float = 100.0) -> Figure:
    """The p-value of "the difference is as large as the margin, or larger". Small means equivalent.

    `range_pp` is how far a cluster's difference can be from 0. Raises ValueError for a margin not above 0.
    """
    if margin_pp is None:
        return Figure.undefined(Reason.NO_MARGIN)
    if margin_pp <= 0:
        raise ValueError(f"an equivalence margin is above 0 points, not {margin_pp:g}")
    if difference.value is None or difference.se is None or difference.departing is None:
        return Figure.undefined(difference.reason or Reason.NO_TASKS)
    if difference.clusters < MIN_CLUSTERS:
        return Figure.undefined(Reason.FEW_CLUSTERS)
    if difference.departing < FEW_DEPARTURES:
        share = min(1.0, margin_pp / range_pp)
        return Figure(binomial_at_most(difference.departing, difference.clusters, share))
    if difference.se <= 1e-10:
        return Figure.undefined(Reason.NO_SPREAD)
    room = min(margin_pp - difference.value, margin_pp + difference.value)
    return Figure(float(t_tail(room / difference.se, difference.clusters - 1)))
