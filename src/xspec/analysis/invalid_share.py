"""The share of invalid trials in two arms: invalid is not random, so a difference in it is itself a finding."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from xspec.analysis.consistency import OutcomeCode, checked_table
from xspec.analysis.contrast import Contrast, contrasts
from xspec.analysis.reasons import Figure, Reason
from xspec.analysis.resampling import RESAMPLES, SEED


@dataclass(frozen=True, slots=True)
class InvalidShare:
    """Percent of trials by arm, and b minus a in points, over the tasks without a missing trial in either."""

    a_pct: Figure
    b_pct: Figure
    contrast: Contrast


def compare_invalid(
    a: ArrayLike,
    b: ArrayLike,
    clusters: ArrayLike | None = None,
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> InvalidShare:
    """Two tables of `OutcomeCode`, runs by tasks, of the same tasks. Raises ValueError if their number differs."""
    one, other = checked_table(a, 1), checked_table(b, 1)
    if one.shape[1] != other.shape[1]:
        raise ValueError(
            f"arms of one comparison have the same tasks, not {one.shape[1]} and {other.shape[1]}"
        )
    whole = np.ones(one.shape[1], dtype=np.bool_)
    for table in (one, other):
        whole &= ~(table == OutcomeCode.MISSING).any(axis=0) & (table.shape[0] > 0)
    if not whole.any():
        nothing = Figure.undefined(Reason.NO_TASKS)
        return InvalidShare(nothing, nothing, Contrast.undefined(Reason.NO_TASKS))
    share_a, share_b = ((table[:, whole] == OutcomeCode.INVALID).mean(axis=0) for table in (one, other))
    labels = None if clusters is None else np.asarray(clusters)[whole]
    (contrast,) = contrasts((share_b - share_a)[:, np.newaxis], labels, resamples=resamples, seed=seed)
    return InvalidShare(Figure(float(100 * share_a.mean())), Figure(float(100 * share_b.mean())), contrast)
