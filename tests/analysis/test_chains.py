"""Where runs part, against the slow reference."""

from itertools import pairwise
from types import ModuleType

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from xspec.analysis.chains import divergence, levenshtein
from xspec.analysis.trajectory import StepTaken, ToolCall, Trajectory

FIXTURES = [HealthCheck.function_scoped_fixture]

calls = st.builds(ToolCall, st.sampled_from("ab"), st.sampled_from("12"))
trajectories = st.lists(st.builds(StepTaken, st.lists(calls, max_size=2).map(tuple)), max_size=4)
tables = st.lists(st.lists(st.none() | trajectories, min_size=3, max_size=3), max_size=4)


def plain(
    table: list[list[Trajectory | None]], names: bool = False
) -> list[list[list[tuple[object, int, int]] | None]]:
    """As the reference takes them: a step is (calls, call event, observation event)."""
    return [
        [
            None
            if trajectory is None
            else [
                (
                    tuple(call.tool for call in step.calls) if names else step.calls,
                    int(step.call_event),
                    int(step.observation_event),
                )
                for step in trajectory
            ]
            for trajectory in runs
        ]
        for runs in table
    ]


def chain(*tools: str) -> list[StepTaken]:
    """A step a tool; an empty text is a step without a call."""
    return [StepTaken((ToolCall(tool, "{}"),) if tool else ()) for tool in tools]


@settings(deadline=None, max_examples=150, suppress_health_check=FIXTURES)
@given(tables, st.booleans())
def test_divergence_equals_the_reference(
    reference: ModuleType, table: list[list[Trajectory | None]], names: bool
) -> None:
    found = divergence(table, "names" if names else "arguments")
    expected = reference.divergence(plain(table, names))
    assert [task.task for task in found.tasks] == list(expected)
    for task in found.tasks:
        chains, first, similarity = expected[task.task]
        assert (task.distinct_chains, task.first_divergent_step) == (chains, first)
        assert task.similarity == (None if similarity is None else pytest.approx(similarity))


@settings(deadline=None, max_examples=80, suppress_health_check=FIXTURES)
@given(tables)
def test_agreement_equals_the_reference(reference: ModuleType, table: list[list[Trajectory | None]]) -> None:
    found = divergence(table)
    rows = list(reference.pair_steps(plain(table)))
    for step in found.agreement:
        here = [row for row in rows if row[1] == step.step]
        assert (step.at_risk, step.parted) == (len(here), sum(row[3] for row in here))
    for earlier, later in pairwise(found.agreement):
        assert later.together <= earlier.together


@settings(deadline=None, suppress_health_check=FIXTURES)
@given(st.lists(st.tuples(st.text("abc", max_size=6), st.text("abc", max_size=6)), max_size=8))
def test_levenshtein_equals_the_textbook(reference: ModuleType, pairs: list[tuple[str, str]]) -> None:
    lengths = np.array([[len(a), len(b)] for a, b in pairs], dtype=np.int64).reshape(-1, 2)
    codes = np.full((2, len(pairs), 6), -1, dtype=np.int64)
    for row, pair in enumerate(pairs):
        for side in (0, 1):
            codes[side, row, : lengths[row, side]] = [ord(letter) for letter in pair[side]]
    found = levenshtein(codes[0], lengths[:, 0], codes[1], lengths[:, 1])
    assert found.tolist() == [reference.levenshtein(a, b) for a, b in pairs]


def test_a_task_by_hand() -> None:
    """Three runs: two part at step 1, one only answers early. Whether a step answers or never came is the same."""
    table = [[chain("a", "b", ""), chain("a", "c"), chain("a", "")], [chain("a"), None, chain("a", "")]]
    found = divergence(table)
    first, second = found.tasks
    assert (first.distinct_chains, first.first_divergent_step, first.runs) == (3, 1, (0, 1, 2))
    assert first.prefixes == ((0, 0, 0), (0, 1, 1), (0, 2, 2))
    assert first.similarity == pytest.approx((0.5 + 0.5 + 0.5) / 3)
    assert (second.distinct_chains, second.first_divergent_step, second.runs) == (1, None, (0, 2))
    assert found.first_steps == (0, 1)
    assert (found.mean_distinct_chains.value, found.divergent_share.value) == (2, 0.5)
    assert [(step.at_risk, step.parted) for step in found.agreement] == [(4, 0), (4, 3), (0, 0)]
    assert [step.together for step in found.agreement] == [1, 0.25, 0.25]


def test_arguments_may_differ_harmlessly() -> None:
    one, other = ([StepTaken((ToolCall("search", text),))] for text in ('{"q":1}', '{"q":2}'))
    assert divergence([[one, other]]).tasks[0].first_divergent_step == 0
    assert divergence([[one, other]], "names").tasks[0].first_divergent_step is None


@pytest.mark.parametrize("table", [[], [[]], [[None, None]], [[[]]], [[chain("a")]]])
def test_nothing_to_compare(table: list[list[Trajectory | None]]) -> None:
    found = divergence(table)
    assert found.mean_distinct_chains.value is None
    assert found.agreement == ()
