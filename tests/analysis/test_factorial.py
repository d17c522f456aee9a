"""The 2x2, and one spec executed twice."""

from typing import Any

import numpy as np
import pytest

from xspec.analysis.aa import compare_executions, run_noise
from xspec.analysis.factorial import factorial
from xspec.analysis.holm import holm
from xspec.analysis.rates import BetaRates
from xspec.analysis.reasons import Reason
from xspec.analysis.task_figures import METRICS, task_figures


def outcomes(random: np.random.Generator, rates: np.ndarray[Any, Any], k: int) -> np.ndarray[Any, Any]:
    return np.where(random.random((k, len(rates))) < rates, 3, 2)


def test_effects_by_hand() -> None:
    """Per task: the first factor lifts the passes of 12 tasks from 2 to 4 of 4, the second does nothing."""
    low = np.tile(np.array([[3], [3], [2], [2]]), (1, 12))
    high = np.full((4, 12), 3)
    found = {
        (row.effect, row.metric): row
        for row in factorial({(0, 0): low, (1, 0): high, (0, 1): low, (1, 1): high}, 4)
    }
    assert found["first", "mean_at_k"].contrast.difference.value == 50
    assert found["first", "gap"].contrast.difference.value == -50
    assert found["second", "gap"].contrast.difference.value == 0
    assert found["interaction", "gap"].contrast.difference.value == 0
    only_both = {(0, 0): low, (1, 0): low, (0, 1): low, (1, 1): high}
    half = {(row.effect, row.metric): row.contrast.difference.value for row in factorial(only_both, 4)}
    assert (half["first", "gap"], half["second", "gap"], half["interaction", "gap"]) == (-25, -25, -50)


def test_effects_equal_their_definition_with_holes_and_clusters(outcomes_of: Any) -> None:
    random = np.random.default_rng(1)
    cells = {cell: outcomes_of(random, 4, 60, 0.02) for cell in [(0, 0), (1, 0), (0, 1), (1, 1)]}
    found = factorial(cells, 4, np.arange(60) // 3, margin_pp=10)
    figures = {cell: task_figures(table, 4) for cell, table in cells.items()}
    shared = [task for task in range(60) if all(task in f.tasks for f in figures.values())]
    for column, metric in enumerate(METRICS):
        x = {
            cell: f.values[[f.tasks.tolist().index(t) for t in shared], column] for cell, f in figures.items()
        }
        rows = {row.effect: row for row in found if row.metric == metric}
        assert {row.tasks for row in rows.values()} == {len(shared)}
        first = ((x[1, 0] - x[0, 0]) + (x[1, 1] - x[0, 1])) / 2
        second = ((x[0, 1] - x[0, 0]) + (x[1, 1] - x[1, 0])) / 2
        both = (x[1, 1] - x[0, 1]) - (x[1, 0] - x[0, 0])
        for effect, values in {"first": first, "second": second, "interaction": both}.items():
            assert rows[effect].contrast.difference.value == pytest.approx(100 * values.mean())
    gaps = [row for row in found if row.metric == "gap"]
    assert [row.p_holm.value for row in gaps] == pytest.approx(holm([row.contrast.p.value for row in gaps]))


def test_a_2x2_needs_its_four_cells() -> None:
    table = np.full((2, 12), 3)
    with pytest.raises(ValueError, match="2x2 has the cells"):
        factorial({(0, 0): table, (1, 0): table}, 2)
    with pytest.raises(ValueError, match="same tasks"):
        factorial({(0, 0): table, (1, 0): table, (0, 1): table, (1, 1): table[:, 1:]}, 2)
    dead = np.ones((2, 12), dtype=int)
    found = factorial({(0, 0): table, (1, 0): table, (0, 1): table, (1, 1): dead}, 2)
    assert {row.contrast.p.reason for row in found} == {Reason.NO_VALID_TRIAL}
    alone = {
        row.metric: row for row in factorial(dict.fromkeys([(0, 0), (1, 0), (0, 1), (1, 1)], table[:1]), 1)
    }
    assert alone["disagreement"].contrast.difference.reason is Reason.ONE_RUN
    assert alone["gap"].contrast.difference.value == 0


@pytest.mark.parametrize(("tasks", "runs", "percent"), [(92, 5, 3), (50, 5, 12), (10, 5, 48), (92, 1, 36)])
def test_five_points_apart_by_run_noise_alone(tasks: int, runs: int, percent: float) -> None:
    """The chances of the statistics page, where 27% of pairs of runs disagree: 22 passes of 26 in each task."""
    table = np.full((26, tasks), 3)
    table[:4] = 2
    assert run_noise(table, 5, runs=runs).chance.value == pytest.approx(percent / 100, abs=0.02)


def test_run_noise_is_the_spread_of_executions_of_the_same_tasks() -> None:
    """Against 4000 simulated executions with fixed rates."""
    random = np.random.default_rng(2)
    rates = random.beta(1.5, 0.7, 60)
    means = 100 * random.binomial(5, rates, (4000, 60)).mean(axis=1) / 5
    expected = np.std(means[::2] - means[1::2])
    found = [run_noise(outcomes(random, rates, 5), 5).se_pp.value for _ in range(100)]
    assert np.sqrt(np.mean(np.square(found))) == pytest.approx(expected, rel=0.05)


def test_run_noise_without_an_answer() -> None:
    assert run_noise([[3, 2]], 1).se_pp.reason is Reason.ONE_RUN
    assert run_noise([[1, 0]], 1).se_pp.reason is Reason.NO_VALID_TRIAL
    assert run_noise(np.full((5, 9), 3), 5).chance.value == 0
    with pytest.raises(ValueError, match="at least one run"):
        run_noise([[3, 2]], 1, runs=0)


def test_aa_of_one_spec() -> None:
    """Same rates: small difference, likely by noise. Another model in the second: noise does not explain it."""
    random = np.random.default_rng(3)
    rates = BetaRates(2.0, 0.7).draw(random, 1, 92).rates.ravel()
    first, second = (outcomes(random, rates, 5) for _ in range(2))
    found = compare_executions(first, second, 5)
    assert {row.metric for row in found.comparisons} == set(METRICS)
    assert found.chance_by_noise.value is not None
    assert found.chance_by_noise.value > 0.05
    moved = compare_executions(first, outcomes(random, rates * 0.8, 5), 5)
    assert moved.chance_by_noise.value is not None
    assert moved.chance_by_noise.value < 0.001
    assert moved.extra_sd_pp.value is not None
    assert moved.extra_sd_pp.value > 5
    nothing = compare_executions(first, np.ones_like(second), 5)
    assert nothing.chance_by_noise.reason is Reason.NO_VALID_TRIAL


def test_chance_by_noise_is_uniform_under_no_effect() -> None:
    random = np.random.default_rng(4)
    rates = random.beta(2, 0.7, 92)
    chances = [
        compare_executions(
            outcomes(random, rates, 5), outcomes(random, rates, 5), 5, resamples=50
        ).chance_by_noise.value
        for _ in range(400)
    ]
    assert np.mean(np.array(chances, dtype=float) <= 0.05) == pytest.approx(0.05, abs=0.03)
    assert np.mean(np.array(chances, dtype=float)) == pytest.approx(0.5, abs=0.05)
