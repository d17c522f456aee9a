"""One contrast: the mean over tasks of a per-task difference, and everything that is said about it."""

from dataclasses import dataclass
from enum import StrEnum

from numpy.typing import ArrayLike

from xspec.analysis.consistency import Floats
from xspec.analysis.detectable import ALPHA, minimum_detectable_pp
from xspec.analysis.equivalence import equivalence_p
from xspec.analysis.intervals import DIFFERENCE, Estimate, Range, mean_estimates
from xspec.analysis.permutation import sign_flip_p
from xspec.analysis.reasons import Figure, Reason
from xspec.analysis.resampling import MIN_CLUSTERS, RESAMPLES, SEED, cluster_numbers, cluster_sums


class Verdict(StrEnum):
    """What can be concluded. A difference that is both found and within the margin counts as found."""

    HIGHER = "higher"
    LOWER = "lower"
    EQUIVALENT = "equivalent"
    INCONCLUSIVE = "inconclusive"
    UNDEFINED = "undefined"


@dataclass(frozen=True, slots=True)
class Contrast:
    """`difference` is in percentage points; `p` is of the sign-flip test, `p_equivalent` of TOST at `margin_pp`."""

    difference: Estimate
    p: Figure
    p_equivalent: Figure
    mde_pp: Figure
    margin_pp: float | None

    def verdict(self, p: Figure | None = None, alpha: float = ALPHA) -> Verdict:
        """The conclusion, from the adjusted p-value if one is given."""
        tested = (p or self.p).value
        if self.difference.value is None or (tested is None and self.p_equivalent.value is None):
            return Verdict.UNDEFINED
        if tested is not None and tested <= alpha:
            return Verdict.HIGHER if self.difference.value > 0 else Verdict.LOWER
        if self.p_equivalent.value is not None and self.p_equivalent.value <= alpha:
            return Verdict.EQUIVALENT
        return Verdict.INCONCLUSIVE

    @classmethod
    def undefined(cls, reason: Reason, margin_pp: float | None = None) -> "Contrast":
        """Nothing can be said, for this reason."""
        nothing = Figure.undefined(reason)
        return cls(Estimate.undefined(reason), nothing, nothing, nothing, margin_pp)


def contrasts(
    differences: Floats,
    clusters: ArrayLike | None,
    value_range: Range = DIFFERENCE,
    *,
    margin_pp: float | None = None,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> tuple[Contrast, ...]:
    """The contrasts of the columns of per-task `differences` (tasks by contrasts, as fractions)."""
    tasks, columns = differences.shape
    if not tasks:
        return tuple(Contrast.undefined(Reason.NO_TASKS, margin_pp) for _ in range(columns))
    estimates = mean_estimates(differences, clusters, value_range, method="cluster-t")
    numbers = cluster_numbers(clusters, tasks)
    p_values = [Figure.undefined(Reason.FEW_CLUSTERS)] * columns
    if int(numbers.max()) + 1 >= MIN_CLUSTERS:
        sums = cluster_sums(differences, numbers)
        p_values = [Figure(float(p)) for p in sign_flip_p(sums, resamples - 1, seed)]
    return tuple(
        Contrast(
            difference=estimate,
            p=p,
            p_equivalent=equivalence_p(estimate, margin_pp, 100 * value_range.high),
            mde_pp=minimum_detectable_pp(estimate),
            margin_pp=margin_pp,
        )
        for estimate, p in zip(estimates, p_values, strict=True)
    )
