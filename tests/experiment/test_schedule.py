"""The order of trials: a pure permutation in which the arms of one task stand together."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from xspec.experiment.schedule import order

TASKS = [f"banking.user_task_{n}" for n in range(7)]
ALL = [(run, task) for run in range(3) for task in TASKS]


def test_order_is_a_permutation_in_which_runs_follow_one_another() -> None:
    places = order([("xs-a", "A", ALL), ("xs-b", "B", ALL)])
    assert sorted(places) == sorted((arm, run, task) for arm in "AB" for run, task in ALL)
    assert [run for _, run, _ in places] == sorted(run for _, run, _ in places)


def test_arms_of_one_task_are_adjacent_and_take_turns_in_being_first() -> None:
    places = order([("xs-a", "A", ALL), ("xs-b", "B", ALL)])
    pairs = [places[i : i + 2] for i in range(0, len(places), 2)]
    assert all(one[1:] == other[1:] for one, other in pairs)
    assert {one[0] for one, _ in pairs} == {"A", "B"}


def test_each_run_has_an_order_of_its_own() -> None:
    places = order([("xs-a", "A", ALL)])
    runs = [[task for _, r, task in places if r == run] for run in range(3)]
    assert len({tuple(tasks) for tasks in runs}) == 3


@given(st.permutations(ALL), st.permutations(["a", "b", "c"]), st.sets(st.sampled_from(ALL)))
def test_order_is_pure_and_the_same_for_an_arm_alone_and_for_what_is_left(
    given_trials: list[tuple[int, str]], arms: list[str], done: set[tuple[int, str]]
) -> None:
    together = order((f"xs-{arm}", arm, given_trials) for arm in arms)
    assert together == order((f"xs-{arm}", arm, ALL) for arm in "abc")
    alone = [(run, task) for _, run, task in order([("xs-b", "b", given_trials)])]
    assert alone == [(run, task) for arm, run, task in together if arm == "b"]
    assert alone == [place for place, _ in itertools.groupby((run, task) for _, run, task in together)]
    left = [place for place in given_trials if place not in done]
    assert [p[1:] for p in order([("xs-b", "b", left)])] == [place for place in alone if place not in done]
