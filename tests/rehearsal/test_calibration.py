"""`tools/calibrate_rehearsal.py`, small: rehearsals by the real path score what their difficulties make expected."""

import runpy
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from xspec.spec.store import Store

TOOL = Path(__file__).parents[2] / "tools" / "calibrate_rehearsal.py"


@pytest.fixture(scope="module")
def tool() -> dict[str, Any]:
    return runpy.run_path(str(TOOL))


def test_few_rehearsals_are_off_by_no_more_than_chance(tool: dict[str, Any], tmp_path: Path) -> None:
    errors = tool["rehearse"](2, ["banking"], 3, Store(tmp_path / "store"), workers=4)
    rows = list(errors.rows())
    assert [row.figure for row in rows] == 3 * ["Mean@{k}", "Pass^{k}", "gap"]
    assert [row.arm for row in rows[::3]] == ["baseline", "guided", "effect of the guide"]
    for row in rows:
        assert abs(row.error) < 4.5 * row.standard_error, row
    expected = {(row.arm, row.figure): row.expected for row in rows}
    assert expected["guided", "Mean@{k}"] > expected["baseline", "Mean@{k}"] + 3
    assert errors.lost <= 2
    first, second = errors.expected
    assert first.tolist() != second.tolist()  # each seed deals other difficulties


def test_variances_are_those_of_all_ways_it_can_come_out(tool: dict[str, Any]) -> None:
    chances, k = np.array([0.2, 0.7, 1.0]), 2
    mean, square = np.zeros(3), np.zeros(3)
    for trials in product((0, 1), repeat=len(chances) * k):
        passed = np.array(trials).reshape(k, -1)
        weight = np.prod(np.where(passed, chances, 1 - chances))
        shares, always = passed.mean(axis=0), passed.all(axis=0)
        figures = 100 * np.array([shares.mean(), always.mean(), (shares - always).mean()])
        mean, square = mean + weight * figures, square + weight * figures**2
    assert tool["variance_of"](chances, k) == pytest.approx(square - mean**2)
