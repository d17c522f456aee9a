"""Holm's step-down adjustment of a family of p-values (Holm 1979, Scandinavian Journal of Statistics 6)."""

from collections.abc import Sequence

import numpy as np


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Adjusted p-values in the same order. A None is no test: it stays None and does not enlarge the family."""
    tested = [index for index, p in enumerate(p_values) if p is not None]
    p = np.array([p_values[index] for index in tested], dtype=np.float64)
    order = np.argsort(p, kind="stable")
    stepped = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    adjusted: list[float | None] = [None] * len(p_values)
    for place, value in zip(order, stepped, strict=True):
        adjusted[tested[place]] = float(value)
    return adjusted
