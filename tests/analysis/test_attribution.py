"""Attribution: ratio 1 under no effect although partings crowd on the second step, a known effect recovered."""

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from xspec.analysis.attribution import Attribution, attribution, attribution_of
from xspec.analysis.reasons import Reason
from xspec.analysis.resampling import cluster_numbers
from xspec.analysis.trajectory import Event, StepTaken, ToolCall, Trajectory

FIXTURES = [HealthCheck.function_scoped_fixture]
HAZARD = [0.02, 0.25, 0.04, 0.03, 0.03, 0.03]

calls = st.builds(ToolCall, st.sampled_from("ab"), st.just("{}"))
steps = st.builds(
    StepTaken,
    st.lists(calls, max_size=1).map(tuple),
    st.sampled_from([Event.NONE, Event.HIDDEN]),
    st.sampled_from([Event.NONE, Event.VISIBLE, Event.HIDDEN | Event.VISIBLE]),
)
tables = st.lists(
    st.lists(st.none() | st.lists(steps, max_size=4), min_size=4, max_size=4), min_size=1, max_size=5
)


@settings(deadline=None, max_examples=150, suppress_health_check=FIXTURES)
@given(tables)
def test_ratio_equals_the_reference(reference: ModuleType, table: list[list[Trajectory | None]]) -> None:
    plain = [
        [
            None if t is None else [(s.calls, int(s.call_event), int(s.observation_event)) for s in t]
            for t in runs
        ]
        for runs in table
    ]
    rows = list(reference.pair_steps(plain))
    for found in attribution(table, resamples=50):
        expected = reference.hazard(rows, found.kind)
        if expected is None:
            assert found.reason is not None
            assert found.hazard_ratio.value in (None, 0)
        else:
            assert found.hazard_ratio.value == pytest.approx(expected[0])
            assert found.attributable_share.value == pytest.approx(expected[1])
    anything = attribution(table, resamples=50)[0]
    assert anything.exposed + anything.unexposed == len(rows)
    assert anything.exposed_parted + anything.unexposed_parted == sum(row[3] for row in rows)


def simulated(
    walks_of: Any, experiments: int, effect: float, tasks: int = 92, clusters: int = 92
) -> list[tuple[Attribution, ...]]:
    random = np.random.default_rng(21)
    return [
        attribution_of(
            walks_of(random, tasks, 5, HAZARD, 0.04, effect), np.arange(tasks) % clusters, resamples=500
        )
        for _ in range(experiments)
    ]


def covered(found: list[Attribution], truth: float) -> float:
    hits = [
        a.hazard_ratio_interval is not None
        and a.hazard_ratio_interval[0] <= truth <= a.hazard_ratio_interval[1]
        for a in found
    ]
    return sum(hits) / len(hits)


def test_ratio_is_one_under_no_effect(walks_of: Any) -> None:
    """300 experiments; most partings at the second step, every kind of event."""
    found = simulated(walks_of, 300, 0.0)
    for kind in range(3):
        logs = [np.log(experiment[kind].hazard_ratio.value) for experiment in found]
        assert abs(np.mean(logs)) < 0.05
        assert 0.92 <= covered([experiment[kind] for experiment in found], 1.0) <= 0.985
        shares = [experiment[kind].attributable_share.value for experiment in found]
        assert abs(np.mean(shares)) < 0.02


def test_without_strata_the_step_would_confound(walks_of: Any, reference: ModuleType) -> None:
    """Events only where partings are many: the crude ratio is far from 1, the stratified one is not."""
    random = np.random.default_rng(22)
    runs = walks_of(random, 2000, 4, HAZARD, 0.0, 0.0)
    runs.call_events[:, 1] = random.random(8000) < 0.3
    found = attribution_of(runs, cluster_numbers(None, 2000), resamples=200)[0]
    crude = (found.exposed_parted / found.exposed) / (found.unexposed_parted / found.unexposed)
    assert crude > 2
    assert found.hazard_ratio.value == pytest.approx(1, abs=0.1)


def test_a_known_effect_is_recovered(walks_of: Any) -> None:
    """Events that the agent sees make it part with a further chance of 0.3; hidden ones do nothing."""
    # Steps weigh in as Mantel-Haenszel weighs them, so the truth is that of one very large experiment, which a pair
    # calculation brackets: at hazard h a pair parts with 1-(1-h)², with one run exposed 1-(1-h)²(1-0.3).
    (truth,) = (row[1].hazard_ratio.value for row in simulated(walks_of, 1, 0.3, tasks=30_000, clusters=9))
    assert truth is not None
    assert (1 - 0.75**2 * 0.7) / (1 - 0.75**2) < truth < (1 - 0.98**2 * 0.7) / (1 - 0.98**2)
    found = simulated(walks_of, 300, 0.3)
    visible = [experiment[1] for experiment in found]
    ratios = [a.hazard_ratio.value for a in visible]
    assert np.exp(np.mean(np.log(np.array(ratios, dtype=float)))) == pytest.approx(truth, rel=0.05)
    assert 0.92 <= covered(visible, truth) <= 0.985
    assert 0.92 <= covered([experiment[2] for experiment in found], 1.0) <= 0.985
    assert (
        np.mean(
            [
                a.attributable_share_interval is not None and a.attributable_share_interval[0] > 0
                for a in visible
            ]
        )
        > 0.8
    )


def test_what_cannot_be_said_has_a_reason(walks_of: Any) -> None:
    random = np.random.default_rng(23)
    calm = attribution_of(walks_of(random, 30, 4, HAZARD, 0.0, 0.0), cluster_numbers(None, 30))
    assert {(a.hazard_ratio.value, a.hazard_ratio.reason) for a in calm} == {(None, Reason.NO_EXPOSURE)}
    steady = attribution_of(walks_of(random, 30, 4, [0.0] * 4, 0.2, 0.0), cluster_numbers(None, 30))
    assert {a.hazard_ratio.reason for a in steady} == {Reason.NO_PARTING}
    few = attribution_of(walks_of(random, 90, 5, HAZARD, 0.1, 0.0), np.arange(90) % 9)
    assert few[0].hazard_ratio.value is not None
    assert (few[0].hazard_ratio_interval, few[0].reason) == (None, Reason.FEW_CLUSTERS)
    assert attribution([], None)[0].reason is Reason.NO_EXPOSURE
    assert attribution([[[StepTaken(())]]], None)[0].reason is Reason.NO_EXPOSURE
