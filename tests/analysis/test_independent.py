"""Held against other people's implementations, where the definitions agree.

The values were computed once with agentrel 0.1.0 (`pass_at_k`, `pass_hat_k`, `holm`, `paired_delta`) and inspect-ai
0.3.285 (reducers `pass_at`, `pass_k`), which gave the same to the last digits. They are copied because inspect-ai would
bring some hundred megabytes, and its releases that have `pass_k` do not resolve beside this project's pins.
"""

import numpy as np
import pytest

from xspec.analysis.arm import arm_figures
from xspec.analysis.consistency import pass_at, pass_hat
from xspec.analysis.distributions import t_tail
from xspec.analysis.holm import holm
from xspec.analysis.intervals import DIFFERENCE, mean_estimates


@pytest.mark.parametrize(
    ("trials", "passes", "k", "at", "hat"),
    [
        (5, 5, 5, 1.0, 1.0),
        (5, 4, 5, 1.0, 0.0),
        (5, 0, 5, 0.0, 0.0),
        (8, 6, 3, 1.0, 0.35714285714285715),
        (8, 1, 3, 0.375, 0.0),
        (10, 7, 5, 1.0, 0.08333333333333333),
        (3, 2, 2, 1.0, 0.3333333333333333),
        (10, 9, 10, 1.0, 0.0),
        (12, 3, 2, 0.4545454545454545, 0.045454545454545456),
    ],
)
def test_pass_at_and_pass_hat(trials: int, passes: int, k: int, at: float, hat: float) -> None:
    c, n = np.array([passes]), np.array([trials])
    assert float(pass_at(c, n, k)[0]) == pytest.approx(at, abs=1e-15)
    assert float(pass_hat(c, n, k)[0]) == pytest.approx(hat, abs=1e-15)


def test_over_tasks() -> None:
    """Four tasks of five runs at k = 3: agentrel says 0.9000, 0.3750 and 0.6500."""
    table = np.array([[1, 1, 1, 0, 1], [0, 0, 1, 0, 0], [1, 1, 1, 1, 1], [1, 0, 1, 1, 0]]).T + 2
    found = arm_figures(table, 3).valid_only
    values = [found[metric].value for metric in ("pass_at_k", "pass_hat_k", "mean_at_k")]
    assert values == pytest.approx([90, 37.5, 65])


def test_holm() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005, 0.6, 0.03]) == pytest.approx([0.05, 0.12, 0.12, 0.03, 0.6, 0.12])


def test_paired_difference() -> None:
    """Fourteen tasks of five runs, each its own cluster: agentrel's paired t-test is our cluster-t."""
    a = np.array([2, 3, 2, 2, 2, 4, 3, 3, 3, 3, 2, 4, 3, 2]) / 5
    b = np.array([4, 5, 5, 5, 5, 4, 4, 5, 2, 4, 4, 5, 2, 2]) / 5
    (found,) = mean_estimates((a - b)[:, np.newaxis], None, DIFFERENCE, method="cluster-t")
    assert found.value is not None
    assert found.se is not None
    assert found.value == pytest.approx(-25.714285714)
    assert found.value / found.se == pytest.approx(-3.479001045682807)
    assert 2 * float(t_tail(-found.value / found.se, 13)) == pytest.approx(0.004074905387381796)
