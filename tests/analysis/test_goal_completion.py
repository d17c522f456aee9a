"""Task and scenario goal completion: by hand, and against the slow reference on tables with missing trials."""

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from xspec.analysis.goal_completion import goal_completion, goal_completion_by_group
from xspec.analysis.reasons import Reason

CODES = {".": 0, "?": 1, "-": 2, "+": 3}
SCENARIOS = ["a", "a", "a", "b", "b", "b"]


def table(*rows: str) -> np.ndarray[Any, Any]:
    """A text per run, a letter per task."""
    return np.array([[CODES[letter] for letter in row] for row in rows])


def test_by_hand() -> None:
    found = goal_completion(table("++++-+", "+++---"), SCENARIOS, [3] * 6)
    assert found is not None
    assert (found.scenarios, found.complete, found.tasks) == (2, 2, 6)
    assert found.tgc.value == pytest.approx(100 * 8 / 12)
    assert found.sgc.value == pytest.approx(50)
    assert found.run_tgc_pct == pytest.approx((100 * 5 / 6, 50))
    assert found.run_sgc_pct == (50, 50)
    assert (found.tgc.clusters, found.sgc.clusters) == (2, 2)


def test_a_scenario_of_which_a_task_was_not_chosen_counts_for_nothing() -> None:
    """Its two easy tasks pass; with the third one it might well have failed."""
    found = goal_completion(table("+++++", "++-++"), SCENARIOS[:5], [3] * 5)
    assert found is not None
    assert (found.scenarios, found.complete, found.tasks) == (2, 1, 3)
    assert (found.tgc.value, found.sgc.value) == (pytest.approx(500 / 6), 50)


def test_so_does_one_with_an_invalid_or_missing_trial_in_any_run() -> None:
    outcomes = table("++++++", "+?++++")
    valid, as_fail = (
        goal_completion(outcomes, SCENARIOS, [3] * 6, invalid_as_fail=flag) for flag in (False, True)
    )
    assert valid is not None
    assert as_fail is not None
    assert (valid.complete, valid.sgc.value, valid.tgc.value) == (1, 100, 100)
    assert (as_fail.complete, as_fail.sgc.value) == (2, 75)
    missing = goal_completion(table("++++++", "+.++++"), SCENARIOS, [3] * 6, invalid_as_fail=True)
    assert missing is not None
    assert missing.complete == 1


def test_without_scenarios_there_is_nothing_to_say() -> None:
    assert goal_completion(table("+-+", "++-"), ["a", "b", "c"], [1, 1, 1]) is None


@pytest.mark.parametrize(
    ("outcomes", "reason"),
    [(table("??????"), Reason.NO_VALID_TRIAL), (table("+?-+.+"), Reason.NO_TASKS)],
)
def test_no_complete_scenario_has_no_figure(outcomes: np.ndarray[Any, Any], reason: Reason) -> None:
    for as_fail in (False, True):
        found = goal_completion(outcomes, SCENARIOS, [3] * 6, invalid_as_fail=as_fail)
        assert found is not None
        if found.complete == 0:
            assert (found.tgc.value, found.sgc.value, found.tgc.reason) == (None, None, reason)
            assert found.run_sgc_pct == ()


def test_by_difficulty_a_scenario_has_to_lie_in_one() -> None:
    outcomes = table("++++++", "++-+++")
    found = goal_completion_by_group(outcomes, SCENARIOS, [3] * 6, ["1", "1", "1", "2", "2", "3"])
    assert list(found) == ["1", "2", "3"]
    assert [(one.scenarios, one.complete) for one in found.values()] == [(1, 1), (1, 0), (1, 0)]
    assert found["1"].sgc.value == 50


def test_equals_the_slow_reference(reference: ModuleType, outcomes_of: Any) -> None:
    random = np.random.default_rng(7)
    compared = 0
    for _ in range(300):
        count, runs = int(random.integers(1, 6)), int(random.integers(1, 5))
        sizes_of = random.integers(1, 5, count)
        scenarios = np.repeat(np.arange(count), sizes_of)
        kept = random.random(len(scenarios)) < 0.9
        if not kept.any():
            continue
        scenarios, sizes = scenarios[kept], sizes_of[scenarios[kept]]
        order = random.permutation(len(scenarios))
        outcomes = outcomes_of(random, runs, len(scenarios), holes=0.04)
        for as_fail in (False, True):
            found = goal_completion(outcomes, scenarios[order], sizes[order], invalid_as_fail=as_fail)
            complete, tgc, sgc = reference.goals(
                outcomes.tolist(), scenarios[order].tolist(), sizes[order].tolist(), as_fail
            )
            if found is None:
                assert sizes.max() == 1
                continue
            assert found.complete == len(complete)
            assert found.tasks == sum(map(len, complete))
            assert found.tgc.value == (None if tgc is None else pytest.approx(100 * tgc))
            assert found.sgc.value == (None if sgc is None else pytest.approx(100 * sgc))
            compared += sgc is not None
    assert compared > 200


def test_what_does_not_fit_the_table_is_refused() -> None:
    with pytest.raises(ValueError, match="one scenario size a task"):
        goal_completion(table("++"), ["a", "a"], [2])
    with pytest.raises(ValueError, match="one cluster label a task"):
        goal_completion(table("++"), ["a"], [2, 2])
