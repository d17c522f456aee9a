"""Values worked out by hand, and a slow, obvious reference on random small tables."""

from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xspec.analysis.consistency import (
    OutcomeCode,
    consistency,
    disagreement_of_tasks,
    gap_of_tasks,
    pass_at,
    pass_hat,
)

CODES = {".": OutcomeCode.MISSING, "?": OutcomeCode.INVALID, "-": OutcomeCode.FAIL, "+": OutcomeCode.PASS}


def table(*rows: str) -> np.ndarray[Any, Any]:
    """A text per run, a letter per task."""
    return np.array([[CODES[letter] for letter in row] for row in rows], dtype=np.int64).reshape(
        len(rows), -1
    )


@st.composite
def tables(draw: st.DrawFn, letters: str = ".?-+") -> np.ndarray[Any, Any]:
    runs, tasks = draw(st.integers(1, 6)), draw(st.integers(1, 7))
    return table(*(draw(st.text(letters, min_size=tasks, max_size=tasks)) for _ in range(runs)))


def test_by_hand() -> None:
    figures = consistency(table("++--", "+-+-", "++--"), k=3)
    assert figures.mean_at_k_pct == pytest.approx(100 * (1 + 2 / 3 + 1 / 3 + 0) / 4)
    assert figures.pass_hat_k_pct == 25
    assert figures.pass_at_k_pct == 75
    assert figures.gap_pp == pytest.approx(25)
    assert figures.gap_pp_invalid_as_fail == figures.gap_pp
    assert figures.gap_pp_bounds == (figures.gap_pp, figures.gap_pp)
    assert figures.flip_rate_pct == 50
    assert figures.disagreement_pct == pytest.approx(100 * (2 / 3 + 2 / 3) / 4)
    assert figures.run_pct == (50, 50, 50)
    assert (figures.complete, figures.incomplete) == ((0, 1, 2, 3), ())


def test_structure_of_the_published_baseline() -> None:
    """168 tasks, k = 5: 89 always pass (53.0%); 650 of 840 trials pass (77.4%): the gap is 24.4."""
    passes = [5] * 89 + [3] * 42 + [2] * 29 + [3, 3, 3, 3, 3, 3] + [0, 0]
    passes[-1] = 650 - sum(passes[:-1])
    assert len(passes) == 168
    assert 0 <= passes[-1] < 5
    outcomes = np.array([[3 if run < c else 2 for c in passes] for run in range(5)])
    figures = consistency(outcomes, k=5)
    rounded = [figures.mean_at_k_pct, figures.pass_hat_k_pct, figures.gap_pp]
    assert [round(value, 1) for value in rounded if value is not None] == [77.4, 53.0, 24.4]


def test_invalid_and_missing_trials() -> None:
    figures = consistency(table("++?.", "+-+-"), k=2)
    assert figures.complete == (0, 1)
    assert figures.incomplete == (2, 3)
    assert figures.mean_at_k_pct == 75
    assert figures.gap_pp == 25
    assert figures.mean_at_k_pct_invalid_as_fail == pytest.approx(100 * 2 / 3)
    assert figures.pass_hat_k_pct_invalid_as_fail == pytest.approx(100 / 3)
    assert figures.gap_pp_invalid_as_fail == pytest.approx(100 / 3)
    assert figures.gap_pp_bounds == pytest.approx((100 / 6, 100 / 3))
    assert (figures.best_run_pct, figures.worst_run_pct) == (100, 50)
    trials = figures.trials
    assert (trials.passed, trials.failed, trials.invalid, trials.missing) == (4, 2, 1, 1)
    assert (trials.valid, trials.total) == (6, 8)


def test_both_terms_of_the_gap_are_over_the_same_tasks() -> None:
    """Task 1 lacks a trial: were its passes in Mean@k alone, a consistent agent would show a gap."""
    figures = consistency(table("-+", "-+", "-?"), k=3)
    assert (figures.mean_at_k_pct, figures.pass_hat_k_pct, figures.gap_pp) == (0, 0, 0)


@pytest.mark.parametrize(("letter", "share"), [("+", 100), ("-", 0)])
def test_always_the_same(letter: str, share: float) -> None:
    figures = consistency(table(*[letter * 4] * 5), k=5)
    shares = {figures.mean_at_k_pct, figures.pass_hat_k_pct, figures.pass_at_k_pct, figures.best_run_pct}
    assert shares == {share}
    assert (figures.gap_pp, figures.flip_rate_pct, figures.disagreement_pct) == (0, 0, 0)


def test_one_task() -> None:
    figures = consistency(table("+", "-", "+"), k=3)
    assert figures.mean_at_k_pct == pytest.approx(200 / 3)
    assert (figures.pass_hat_k_pct, figures.pass_at_k_pct, figures.flip_rate_pct) == (0, 100, 100)


def test_one_run_says_nothing_about_disagreement() -> None:
    figures = consistency(table("+-"), k=1)
    assert (figures.mean_at_k_pct, figures.pass_hat_k_pct, figures.gap_pp) == (50, 50, 0)
    assert figures.disagreement_pct is None


@pytest.mark.parametrize("outcomes", [table("??", "??"), table("..", "?."), table("..", ".."), table("", "")])
def test_no_valid_trial_has_no_score(outcomes: np.ndarray[Any, Any]) -> None:
    figures = consistency(outcomes, k=2)
    assert {
        figures.mean_at_k_pct,
        figures.pass_hat_k_pct,
        figures.pass_at_k_pct,
        figures.gap_pp,
        figures.flip_rate_pct,
        figures.disagreement_pct,
        figures.mean_at_k_pct_invalid_as_fail,
        figures.pass_hat_k_pct_invalid_as_fail,
        figures.gap_pp_invalid_as_fail,
        figures.gap_pp_bounds,
        figures.best_run_pct,
        figures.worst_run_pct,
    } == {None}
    assert figures.run_pct == (None, None)


def test_more_runs_than_k() -> None:
    """4 trials, 3 passes, k = 2: C(3,2)/C(4,2) = 1/2, and no two of them both failed."""
    figures = consistency(table("+", "+", "-", "+"), k=2)
    assert (figures.mean_at_k_pct, figures.pass_hat_k_pct, figures.pass_at_k_pct) == (75, 50, 100)
    assert figures.gap_pp == 25


def test_fewer_runs_than_k_has_no_figure_at_k() -> None:
    figures = consistency(table("++", "++"), k=3)
    assert (figures.mean_at_k_pct, figures.gap_pp, figures.gap_pp_invalid_as_fail) == (None, None, None)
    assert figures.incomplete == (0, 1)
    assert figures.best_run_pct == 100


def test_large_k_neither_overflows_nor_rounds() -> None:
    figures = consistency(np.full((1000, 3), OutcomeCode.PASS), k=1000)
    assert (figures.pass_hat_k_pct, figures.gap_pp) == (100, 0)


@pytest.mark.parametrize(
    ("outcomes", "k"),
    [([3, 3], 1), ([[4]], 1), ([[-1]], 1), ([[1.0]], 1), ([[True]], 1), ([["pass"]], 1), ([[3]], 0)],
)
def test_what_is_no_outcome_table(outcomes: Any, k: int) -> None:
    with pytest.raises(ValueError, match=r"outcome table|k is at least"):
        consistency(outcomes, k)


@pytest.mark.parametrize("per_task", [pass_hat, pass_at, gap_of_tasks])
def test_tasks_with_fewer_than_k_trials_are_refused(per_task: Any) -> None:
    with pytest.raises(ValueError, match="leave it out"):
        per_task(np.array([1]), np.array([2]), 3)
    with pytest.raises(ValueError, match="leave it out"):
        disagreement_of_tasks(np.array([1]), np.array([1]))


def slow_gap(outcomes: list[list[int]], k: int) -> tuple[float, float, float] | None:
    """Mean@k, Pass^k, Pass@k in percent, by listing every choice of k valid trials."""
    mean, hat, at = [], [], []
    for task in zip(*outcomes, strict=True):
        valid = [code == OutcomeCode.PASS for code in task if code >= OutcomeCode.FAIL]
        if len(valid) < k:
            continue
        choices = list(combinations(valid, k))
        mean.append(sum(valid) / len(valid))
        hat.append(sum(all(choice) for choice in choices) / len(choices))
        at.append(sum(any(choice) for choice in choices) / len(choices))
    if not mean:
        return None
    return 100 * sum(mean) / len(mean), 100 * sum(hat) / len(hat), 100 * sum(at) / len(at)


@settings(deadline=None)
@given(tables(), st.integers(1, 6))
def test_equals_the_slow_reference(outcomes: np.ndarray[Any, Any], k: int) -> None:
    figures = consistency(outcomes, k)
    expected = slow_gap(outcomes.tolist(), k)
    found = figures.mean_at_k_pct, figures.pass_hat_k_pct, figures.pass_at_k_pct
    if expected is None:
        assert found == (None, None, None)
        assert figures.gap_pp is None
    else:
        assert found == pytest.approx(expected)
        assert figures.gap_pp == pytest.approx(expected[0] - expected[1])
        assert figures.gap_pp is not None
        assert figures.gap_pp >= 0
    assert figures.trials.total == outcomes.size
    assert sorted(figures.complete + figures.incomplete) == list(range(outcomes.shape[1]))


@settings(deadline=None)
@given(tables(), st.integers(1, 6))
def test_invalid_as_fail_equals_the_slow_reference(outcomes: np.ndarray[Any, Any], k: int) -> None:
    figures = consistency(outcomes, k)
    kept = outcomes[:, ~(outcomes == OutcomeCode.MISSING).any(axis=0)]
    expected = slow_gap(np.where(kept == OutcomeCode.INVALID, OutcomeCode.FAIL, kept).tolist(), k)
    if expected is None or figures.trials.valid == 0:
        assert figures.gap_pp_invalid_as_fail is None
    else:
        assert figures.mean_at_k_pct_invalid_as_fail == pytest.approx(expected[0])
        assert figures.pass_hat_k_pct_invalid_as_fail == pytest.approx(expected[1])
        assert figures.gap_pp_invalid_as_fail == pytest.approx(expected[0] - expected[1])


@settings(deadline=None, max_examples=40)
@given(tables(letters="?-+"), st.integers(1, 4))
def test_bounds_hold_whatever_the_invalid_trials_were(outcomes: np.ndarray[Any, Any], k: int) -> None:
    figures = consistency(outcomes, k)
    if figures.gap_pp_bounds is None:
        return
    low, high = figures.gap_pp_bounds
    assert figures.gap_pp_invalid_as_fail is not None
    assert low - 1e-9 <= figures.gap_pp_invalid_as_fail <= high + 1e-9
    places = np.argwhere(outcomes == OutcomeCode.INVALID)[:5]
    rest = np.where(outcomes == OutcomeCode.INVALID, OutcomeCode.FAIL, outcomes)
    reached = []
    for verdicts in product((OutcomeCode.FAIL, OutcomeCode.PASS), repeat=len(places)):
        decided = rest.copy()
        decided[tuple(places.T)] = verdicts
        gap = consistency(decided, k).gap_pp
        assert gap is not None
        reached.append(gap)
        assert low - 1e-9 <= gap <= high + 1e-9
    if (outcomes == OutcomeCode.INVALID).sum() <= 5:
        assert (min(reached), max(reached)) == pytest.approx((low, high))


@settings(deadline=None)
@given(tables(letters="-+"))
def test_the_gap_is_a_mean_over_tasks(outcomes: np.ndarray[Any, Any]) -> None:
    k = outcomes.shape[0]
    passes = (outcomes == OutcomeCode.PASS).sum(axis=0)
    assert consistency(outcomes, k).gap_pp == pytest.approx(100 * np.mean(passes / k - (passes == k)))


@settings(deadline=None)
@given(tables(), st.integers(1, 4), st.randoms(use_true_random=False))
def test_order_of_runs_and_tasks_is_irrelevant(outcomes: np.ndarray[Any, Any], k: int, random: Any) -> None:
    runs, tasks = (random.sample(range(size), size) for size in outcomes.shape)
    one, other = consistency(outcomes, k), consistency(outcomes[np.ix_(runs, tasks)], k)
    assert one.gap_pp == pytest.approx(other.gap_pp)
    assert one.disagreement_pct == pytest.approx(other.disagreement_pct)
    assert (one.best_run_pct, one.worst_run_pct) == (other.best_run_pct, other.worst_run_pct)
