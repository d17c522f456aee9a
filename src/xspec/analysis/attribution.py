"""Is the agent inconsistent, or the plumbing? How much more often runs part right after an infrastructure event.

The unit is a pair of runs of one task that is still on a common prefix at step t. It is *exposed* if either run had an
event in its call t or in the observation of step t-1. The hazard ratio P(part at t | exposed)/P(part at t | not) is
the Mantel-Haenszel risk ratio with the steps as strata (Nurminen 1981; Greenland and Robins 1985, Biometrics 41):

    RR = sum_t a_t n0_t/n_t  /  sum_t b_t n1_t/n_t

with a_t, b_t the exposed and unexposed pairs that part at t, n1_t, n0_t those at risk. Without strata the step
confounds: most partings are at the second step. Pairs of a task depend on each other, so uncertainty comes from a
bootstrap over clusters of tasks: log RR ± t(G-1) times the standard deviation of log RR over resamples.

The attributable share = exposed share of the partings * (RR-1)/RR (Miettinen 1974), its interval likewise on the
scale of log(1 - share). It is below 0 when exposed pairs part less. All this is association; causal is only what was
randomised, the route factor.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from xspec.analysis.consistency import Floats, Ints
from xspec.analysis.distributions import t_quantile
from xspec.analysis.intervals import LEVEL
from xspec.analysis.reasons import Figure, Reason
from xspec.analysis.resampling import (
    MIN_CLUSTERS,
    RESAMPLES,
    SEED,
    cluster_numbers,
    cluster_sums,
    resample_counts,
)
from xspec.analysis.trajectory import EncodedRuns, Event, TrajectoryTable, encode, pairs_of_runs

Kind = Literal["any", "visible", "hidden"]
KINDS: tuple[Kind, ...] = ("any", "visible", "hidden")

# A bootstrap most of whose resamples have a ratio says something; the others had no exposed or no other parting.
_MIN_DEFINED = 0.95


@dataclass(frozen=True, slots=True)
class Attribution:
    """For one kind of event. Pairs with events of another kind only are left out, so `unexposed` had none at all.

    Counts are of (pair, step). `reason` says why there is no interval although there is a value.
    """

    kind: Kind
    exposed: int
    exposed_parted: int
    unexposed: int
    unexposed_parted: int
    hazard_ratio: Figure
    hazard_ratio_interval: tuple[float, float] | None
    attributable_share: Figure
    attributable_share_interval: tuple[float, float] | None
    clusters: int
    reason: Reason | None


def attribution(
    table: TrajectoryTable,
    clusters: ArrayLike | None = None,
    *,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> tuple[Attribution, ...]:
    """Any, visible, and hidden events. `table` is by task and run, `clusters` has a label a task."""
    return attribution_of(
        encode(table)["arguments"],
        cluster_numbers(clusters, len(table)),
        level=level,
        resamples=resamples,
        seed=seed,
    )


def attribution_of(
    runs: EncodedRuns,
    cluster_of_task: Ints,
    *,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> tuple[Attribution, ...]:
    """The same from trials that are encoded already, with the arguments."""
    one, other = pairs_of_runs(runs.task)
    same = runs.prefixes[one] == runs.prefixes[other]
    before = np.ones_like(same)
    before[:, 1:] = same[:, :-1]
    longest = np.maximum(runs.steps[one], runs.steps[other])
    at_risk = before & (np.arange(same.shape[1]) < longest[:, np.newaxis])
    parted = at_risk & ~same
    flags = runs.call_events.copy()
    flags[:, 1:] |= runs.observation_events[:, :-1]
    events = flags[one] | flags[other]
    pair_cluster = np.unique(cluster_of_task[runs.task[one]], return_inverse=True)[1].astype(np.int64)
    exposures = {"any": events != 0, "visible": events & Event.VISIBLE != 0, "hidden": events == Event.HIDDEN}
    calm = events == 0
    # (pair, step) by cluster and step: exposed and parted, exposed, for each kind; then the same for no event at all.
    counts = np.stack(
        [
            cluster_sums((chosen & group).astype(np.float64), pair_cluster)
            for chosen in [*(exposures[kind] for kind in KINDS), calm]
            for group in (parted, at_risk)
        ]
    )
    drawn: Floats | None = None
    if counts.shape[1] >= MIN_CLUSTERS:
        products = resample_counts(counts.shape[1], resamples, seed) @ np.concatenate(list(counts), axis=1)
        drawn = np.stack(np.split(products, len(counts), axis=1))
    return tuple(
        _attribution(
            kind,
            counts[[2 * place, 2 * place + 1, -2, -1]],
            None if drawn is None else drawn[[2 * place, 2 * place + 1, -2, -1]],
            level,
        )
        for place, kind in enumerate(KINDS)
    )


def _attribution(kind: Kind, counts: Floats, drawn: Floats | None, level: float) -> Attribution:
    clusters = counts.shape[1]
    totals = counts.sum(axis=(1, 2))
    ratio, share, reason = _ratio_and_share(counts.sum(axis=1))
    intervals: tuple[tuple[float, float] | None, tuple[float, float] | None] = (None, None)
    if reason is None and drawn is None:
        reason = Reason.FEW_CLUSTERS
    elif reason is None and drawn is not None:
        intervals = _intervals(drawn, ratio, share, t_quantile((1 + level) / 2, clusters - 1))
        if intervals[0] is None:
            reason = Reason.UNSTABLE
    return Attribution(
        kind=kind,
        exposed=int(totals[1]),
        exposed_parted=int(totals[0]),
        unexposed=int(totals[3]),
        unexposed_parted=int(totals[2]),
        hazard_ratio=Figure.undefined(reason) if reason and np.isnan(ratio) else Figure(ratio),
        hazard_ratio_interval=intervals[0],
        attributable_share=Figure.undefined(reason) if reason and np.isnan(share) else Figure(share),
        attributable_share_interval=intervals[1],
        clusters=clusters,
        reason=reason,
    )


def _ratio_and_share(counts: Floats) -> tuple[float, float, Reason | None]:
    """From counts by step. Not-a-number with a reason where undefined; it goes no further than the caller."""
    if not counts[1].any():
        return np.nan, np.nan, Reason.NO_EXPOSURE
    if not counts[0].any() and not counts[2].any():
        return np.nan, np.nan, Reason.NO_PARTING
    top, bottom = _mantel_haenszel(counts)
    if bottom == 0:
        return np.nan, np.nan, Reason.NO_UNEXPOSED_PARTING
    ratio = float(top / bottom)
    exposed_share = counts[0].sum() / (counts[0].sum() + counts[2].sum())
    if ratio == 0:
        return ratio, 0.0, Reason.NO_PARTING
    return ratio, float(exposed_share * (1 - 1 / ratio)), None


def _mantel_haenszel(counts: Floats) -> tuple[Floats, Floats]:
    """Numerator and denominator of the ratio; `counts` is (4, …, steps)."""
    a, exposed, b, unexposed = counts
    pairs = np.maximum(exposed + unexposed, 1)
    return (a * unexposed / pairs).sum(axis=-1), (b * exposed / pairs).sum(axis=-1)


def _intervals(
    drawn: Floats, ratio: float, share: float, quantile: float
) -> tuple[tuple[float, float] | None, tuple[float, float] | None]:
    # Steps at which all pairs are exposed, or none, add nothing to the ratio, in no resample.
    both = drawn[1].any(axis=0) & drawn[3].any(axis=0)
    top, bottom = _mantel_haenszel(drawn[:, :, both])
    exposed, unexposed = drawn[0].sum(axis=1), drawn[2].sum(axis=1)
    defined = (top > 0) & (bottom > 0)
    if defined.mean() < _MIN_DEFINED:
        return None, None
    ratios = top[defined] / bottom[defined]
    shares = exposed[defined] / (exposed + unexposed)[defined] * (1 - 1 / ratios)

    def around(value: float, values: Floats, back: Callable[[float], float]) -> tuple[float, float]:
        reach = quantile * float(values.std(ddof=1))
        low, high = sorted((back(value - reach), back(value + reach)))
        return low, high

    return (
        around(float(np.log(ratio)), np.log(ratios), lambda x: float(np.exp(x))),
        around(float(np.log1p(-share)), np.log1p(-shares), lambda x: float(-np.expm1(x))),
    )
