"""The 2x2 of two factors, each at two levels, on the tasks complete in all four arms.

Per task, with x[ij] the value in the arm at level i of the first factor and j of the second: main effect of the first
= ((x10 - x00) + (x11 - x01))/2, of the second likewise, interaction = (x11 - x01) - (x10 - x00). Each is a mean over
tasks and gets the interval and the test of any contrast; Holm's family is the three effects on the gap.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from xspec.analysis.compare import PRIMARY
from xspec.analysis.consistency import Floats
from xspec.analysis.contrast import Contrast, Verdict, contrasts
from xspec.analysis.holm import holm
from xspec.analysis.intervals import DIFFERENCE, INTERACTION
from xspec.analysis.reasons import Figure, Reason
from xspec.analysis.resampling import RESAMPLES, SEED
from xspec.analysis.task_figures import METRICS, Metric, task_figures

Effect = Literal["first", "second", "interaction"]
EFFECTS: tuple[Effect, ...] = get_args(Effect)
Cell = tuple[int, int]
CELLS: tuple[Cell, ...] = ((0, 0), (1, 0), (0, 1), (1, 1))


@dataclass(frozen=True, slots=True)
class FactorialEffect:
    """One effect on one metric, in percentage points. `p_holm` has a value for the gap only."""

    effect: Effect
    metric: Metric
    invalid_as_fail: bool
    contrast: Contrast
    p_holm: Figure
    verdict: Verdict
    tasks: int


def factorial(
    cells: Mapping[Cell, ArrayLike],
    k: int,
    clusters: ArrayLike | None = None,
    *,
    invalid_as_fail: bool = False,
    margin_pp: float | None = None,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> tuple[FactorialEffect, ...]:
    """All effects on all metrics. `cells` has an outcome table for each of (0,0), (1,0), (0,1), (1,1).

    Raises ValueError when a cell is wanting or the tables' tasks differ in number.
    """
    if set(cells) != set(CELLS):
        raise ValueError(f"a 2x2 has the cells {sorted(CELLS)}, not {sorted(cells)}")
    if len({np.asarray(cells[cell]).shape[-1] for cell in CELLS}) > 1:
        raise ValueError("the arms of a 2x2 have the same tasks")
    arms = {cell: task_figures(cells[cell], k, invalid_as_fail=invalid_as_fail) for cell in CELLS}
    if not all(arm.has_valid_trial for arm in arms.values()):
        rows = {effect: _nothing(Reason.NO_VALID_TRIAL, margin_pp) for effect in EFFECTS}
        return _effects(rows, invalid_as_fail, 0)
    shared = reduce(np.intersect1d, (arm.tasks for arm in arms.values()))
    x00, x10, x01, x11 = (arms[cell].on(shared) for cell in CELLS)
    labels = None if clusters is None else np.asarray(clusters)[shared]
    defined = [all(flags) for flags in zip(*(arm.defined for arm in arms.values()), strict=True)]
    rows = {}
    effects: dict[Effect, Floats] = {
        "first": ((x10 - x00) + (x11 - x01)) / 2,
        "second": ((x01 - x00) + (x11 - x10)) / 2,
        "interaction": (x11 - x01) - (x10 - x00),
    }
    for effect, values in effects.items():
        span = INTERACTION if effect == "interaction" else DIFFERENCE
        found = contrasts(values, labels, span, margin_pp=margin_pp, resamples=resamples, seed=seed)
        rows[effect] = tuple(
            row if fine or row.difference.value is None else Contrast.undefined(Reason.ONE_RUN, margin_pp)
            for row, fine in zip(found, defined, strict=True)
        )
    return _effects(rows, invalid_as_fail, len(shared))


def _nothing(reason: Reason, margin_pp: float | None) -> tuple[Contrast, ...]:
    return (Contrast.undefined(reason, margin_pp),) * len(METRICS)


def _effects(
    rows: Mapping[Effect, tuple[Contrast, ...]], invalid_as_fail: bool, tasks: int
) -> tuple[FactorialEffect, ...]:
    primary = METRICS.index(PRIMARY)
    adjusted = holm([rows[effect][primary].p.value for effect in EFFECTS])
    found = []
    for effect, p in zip(EFFECTS, adjusted, strict=True):
        for metric, contrast in zip(METRICS, rows[effect], strict=True):
            p_holm = Figure.undefined(Reason.SECONDARY)
            if metric == PRIMARY:
                p_holm = Figure(p) if p is not None else contrast.p
            verdict = contrast.verdict(p_holm if metric == PRIMARY else None)
            found.append(FactorialEffect(effect, metric, invalid_as_fail, contrast, p_holm, verdict, tasks))
    return tuple(found)
