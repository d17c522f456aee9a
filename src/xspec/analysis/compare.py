"""Two arms, paired on tasks: d_i = x_iB - x_iA over the tasks complete in both.

Clusters are kept whole, run j of A is never paired with run j of B, and more runs of the same tasks never count as
more tasks. The primary metric is the gap: Holm's family is the gap's contrasts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from xspec.analysis.consistency import Floats
from xspec.analysis.contrast import Contrast, Verdict, contrasts
from xspec.analysis.holm import holm
from xspec.analysis.reasons import Figure, Reason
from xspec.analysis.resampling import RESAMPLES, SEED
from xspec.analysis.task_figures import METRICS, Metric, TaskFigures, task_figures

PRIMARY: Metric = "gap"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Arm `b` minus arm `a` in one metric. `tasks` counts those complete in both, `left_out` numbers the others.

    `p_holm` is adjusted within the gap's contrasts and has no value for other metrics, whose verdicts go by `p`.
    """

    a: str
    b: str
    metric: Metric
    invalid_as_fail: bool
    contrast: Contrast
    p_holm: Figure
    verdict: Verdict
    tasks: int
    left_out: tuple[int, ...]


def compare_arms(
    outcomes: Mapping[str, ArrayLike],
    pairs: Sequence[tuple[str, str]],
    k: int,
    clusters: ArrayLike | None = None,
    *,
    invalid_as_fail: bool = False,
    margin_pp: float | None = None,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> tuple[Comparison, ...]:
    """Every metric for every pair (a, b) of arm names; all tables have the same tasks in the same order.

    A comparison of routes leads with `invalid_as_fail`: "valid only" conditions on the effect under study.
    Raises ValueError when the tables' tasks differ in number.
    """
    per_arm = {
        arm: task_figures(table, k, invalid_as_fail=invalid_as_fail) for arm, table in outcomes.items()
    }
    total = _task_count(outcomes)
    labels = None if clusters is None else np.asarray(clusters)
    found: list[Comparison] = []
    for a, b in pairs:
        one, other = per_arm[a], per_arm[b]
        shared = np.intersect1d(one.tasks, other.tasks, assume_unique=True)
        left_out = tuple(np.setdiff1d(np.arange(total), shared).tolist())
        rows = _pair(one, other, shared, labels, margin_pp, resamples, seed)
        found += [
            Comparison(
                a,
                b,
                metric,
                invalid_as_fail,
                contrast,
                Figure.undefined(Reason.SECONDARY),
                contrast.verdict(),
                len(shared),
                left_out,
            )
            for metric, contrast in rows.items()
        ]
    return _adjusted(found)


def _pair(
    one: TaskFigures,
    other: TaskFigures,
    shared: NDArray[np.int64],
    labels: NDArray[np.generic] | None,
    margin_pp: float | None,
    resamples: int,
    seed: int,
) -> dict[Metric, Contrast]:
    if not (one.has_valid_trial and other.has_valid_trial):
        return dict.fromkeys(METRICS, Contrast.undefined(Reason.NO_VALID_TRIAL, margin_pp))
    differences: Floats = other.on(shared) - one.on(shared)
    kept = None if labels is None else labels[shared]
    rows = contrasts(differences, kept, margin_pp=margin_pp, resamples=resamples, seed=seed)
    defined = [both and each for both, each in zip(one.defined, other.defined, strict=True)]
    return {
        metric: row if fine or row.difference.value is None else Contrast.undefined(Reason.ONE_RUN, margin_pp)
        for metric, row, fine in zip(METRICS, rows, defined, strict=True)
    }


def _adjusted(found: Sequence[Comparison]) -> tuple[Comparison, ...]:
    family = [c for c in found if c.metric == PRIMARY]
    steps = iter(holm([c.contrast.p.value for c in family]))
    done = []
    for comparison in found:
        if comparison.metric == PRIMARY:
            p = next(steps)
            p_holm = Figure(p) if p is not None else comparison.contrast.p
            comparison = replace(comparison, p_holm=p_holm, verdict=comparison.contrast.verdict(p_holm))
        done.append(comparison)
    return tuple(done)


def _task_count(outcomes: Mapping[str, ArrayLike]) -> int:
    counts = {arm: np.asarray(table).shape[-1] for arm, table in outcomes.items()}
    if len(set(counts.values())) > 1:
        raise ValueError(f"arms of one comparison have the same tasks, not {counts}")
    return next(iter(counts.values()), 0)
