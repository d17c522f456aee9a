from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import betainc, betaincinv

from xspec.rehearsal.difficulty import beta_cdf, beta_quantile, difficulty_of
from xspec.rehearsal.scripts import TaskScript
from xspec.spec.members import RehearsalBehaviour


@given(st.floats(0.05, 1000), st.floats(0.05, 1000), st.floats(0.001, 0.999))
def test_beta_agrees_with_scipy(alpha: float, beta: float, p: float) -> None:
    x = float(betaincinv(alpha, beta, p))
    assert beta_cdf(x, alpha, beta) == pytest.approx(float(betainc(alpha, beta, x)), abs=1e-10)
    assert beta_quantile(p, alpha, beta) == pytest.approx(x, abs=1e-9)


def _task(task: str, calls: int, commit: int) -> TaskScript:
    made = [{"name": "get_x", "arguments": {"i": i}} for i in range(calls)]
    return TaskScript.of(task, {"instruction": task, "calls": made, "answer": "a", "commit": commit})


@given(st.text(min_size=1, max_size=9), st.integers(0, 18), st.integers(-1, 20), st.integers(-9, 9))
def test_a_flip_never_lies_beyond_the_commit_point(task: str, calls: int, commit: int, seed: int) -> None:
    behaviour = RehearsalBehaviour(
        unstable_tasks=0.5,
        hopeless_tasks=0.5,
        flip_alpha=1.0,
        flip_beta=1.0,
        detour=0.0,
        guide_effect=0.0,
        replan=0.0,
        difficulty_seed=seed,
    )
    difficulty = difficulty_of(behaviour, _task(task, calls, commit))
    assert (difficulty.point is None) == (commit < 0)
    if difficulty.point is not None:
        assert difficulty.point <= commit
        assert difficulty.point < max(calls, 1)


def test_shares_and_mean_are_as_set(behaviour: Callable[..., dict[str, Any]]) -> None:
    settings = RehearsalBehaviour(**behaviour(unstable_tasks=0.4, hopeless_tasks=0.1, difficulty_seed=5))
    drawn = [difficulty_of(settings, _task(f"t{i}", 4, 3)) for i in range(2000)]
    unstable = [d.flip for d in drawn if d.point is not None and not d.hopeless]
    assert len(unstable) / 2000 == pytest.approx(0.4, abs=0.04)
    assert sum(d.hopeless for d in drawn) / 2000 == pytest.approx(0.1, abs=0.03)
    assert sum(unstable) / len(unstable) == pytest.approx(0.4, abs=0.03)
    assert {d.point for d in drawn} == {None, 0, 1, 2, 3}


def test_difficulty_depends_on_seed_and_task_alone(behaviour: Callable[..., dict[str, Any]]) -> None:
    one = RehearsalBehaviour(**behaviour(unstable_tasks=1.0, detour=0.1))
    other = RehearsalBehaviour(**behaviour(unstable_tasks=1.0, detour=0.4, replan=0.3))
    reseeded = RehearsalBehaviour(**behaviour(unstable_tasks=1.0, difficulty_seed=2))
    task = _task("t", 3, 2)
    assert difficulty_of(one, task) == difficulty_of(other, task) != difficulty_of(reseeded, task)


@pytest.mark.parametrize("shares", [{"unstable_tasks": 0.6, "hopeless_tasks": 0.5}])
def test_shares_beyond_the_whole_are_refused(
    behaviour: Callable[..., dict[str, Any]], shares: dict[str, float]
) -> None:
    with pytest.raises(ValueError, match="shares of one whole"):
        RehearsalBehaviour(**behaviour(**shares))
