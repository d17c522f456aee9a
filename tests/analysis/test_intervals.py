"""Intervals against the slow reference, at the ends of the range, and their coverage on small simulations."""

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from xspec.analysis.arm import arm_figures, figures_by_group
from xspec.analysis.distributions import t_quantile
from xspec.analysis.intervals import DIFFERENCE, RATE, mean_estimates
from xspec.analysis.rates import BetaRates
from xspec.analysis.reasons import Reason
from xspec.analysis.resampling import resample_counts
from xspec.analysis.task_figures import METRICS, task_figures

FIXTURES = [HealthCheck.function_scoped_fixture]


@settings(deadline=None, max_examples=40, suppress_health_check=FIXTURES)
@given(
    st.integers(0, 10**6),
    st.integers(1, 4),
    st.integers(0, 9),
    st.integers(1, 5),
    st.booleans(),
)
def test_per_task_figures_equal_the_reference(
    reference: ModuleType, outcomes_of: Any, seed: int, runs: int, tasks: int, k: int, as_fail: bool
) -> None:
    table = outcomes_of(np.random.default_rng(seed), runs, tasks, 0.3)
    found = task_figures(table, k, invalid_as_fail=as_fail)
    expected = reference.task_values(table.tolist(), k, as_fail)
    assert found.tasks.tolist() == list(expected)
    for row, values in zip(found.values, expected.values(), strict=True):
        assert row.tolist() == pytest.approx([values[metric] for metric in METRICS])


@settings(deadline=None, max_examples=25, suppress_health_check=FIXTURES)
@given(st.integers(0, 10**6), st.integers(10, 25), st.integers(12, 40))
def test_bootstrap_t_equals_the_reference(
    reference: ModuleType, seed: int, clusters: int, tasks: int
) -> None:
    """Given the same draws: the intervals are the same, in clusters of unequal size too."""
    random = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(clusters), random.integers(0, clusters, max(tasks - clusters, 0))])
    values = random.beta(2, 2, len(labels)).round(2)
    (found,) = mean_estimates(values[:, np.newaxis], labels, resamples=199)
    groups = reference.by_cluster(values.tolist(), labels.tolist())
    draws = [
        np.repeat(np.arange(clusters), row.astype(int)).tolist()
        for row in resample_counts(clusters, 199, 20260915)
    ]
    mean, se = reference.mean_and_se(groups)
    assert (found.value, found.se) == pytest.approx((100 * mean, 100 * se))
    assert (found.tasks, found.clusters) == (len(labels), clusters)
    assert found.interval is not None
    assert found.interval.method == "bootstrap-t"
    low, high = reference.bootstrap_t(groups, draws)
    assert (found.interval.low, found.interval.high) == pytest.approx(
        (max(0, 100 * low), min(100, 100 * high))
    )


def test_cluster_t_is_students_t_when_each_task_is_a_cluster() -> None:
    values = np.array([0.1, 0.4, -0.2, 0.6, 0.2, 0.8, -0.1])
    (found,) = mean_estimates(values[:, np.newaxis], None, DIFFERENCE, method="cluster-t")
    reach = t_quantile(0.975, 6) * values.std(ddof=1) / np.sqrt(7)
    assert found.interval is not None
    assert found.interval.low == pytest.approx(100 * (values.mean() - reach))
    assert found.interval.high == pytest.approx(100 * (values.mean() + reach))


def test_copies_of_a_task_in_its_cluster_do_not_narrow_the_interval() -> None:
    values = np.random.default_rng(3).random(20)
    once = mean_estimates(values[:, np.newaxis], np.arange(20))[0]
    thrice = mean_estimates(np.repeat(values, 3)[:, np.newaxis], np.repeat(np.arange(20), 3))[0]
    assert once.interval is not None
    assert thrice.interval is not None
    assert (thrice.interval.low, thrice.interval.high) == pytest.approx(
        (once.interval.low, once.interval.high)
    )


@pytest.mark.parametrize(
    ("value", "low", "high"), [(1.0, 100 * 0.05 ** (1 / 30), 100.0), (0.0, 0.0, 100 - 100 * 0.05 ** (1 / 30))]
)
def test_all_the_same_at_an_end_has_the_rule_of_three(value: float, low: float, high: float) -> None:
    (found,) = mean_estimates(np.full((30, 1), value), None)
    assert found.reason is Reason.NO_SPREAD
    assert found.interval is not None
    assert found.interval.method == "exact bound"
    assert (found.interval.low, found.interval.high) == pytest.approx((low, high))


def test_what_cannot_be_said_has_a_reason() -> None:
    nothing, one, same = (
        mean_estimates(values, labels)[0]
        for values, labels in [
            (np.zeros((0, 1)), None),
            (np.array([[0.2], [0.9]]), ["x", "x"]),
            (np.full((12, 1), 0.6), None),
        ]
    )
    assert (nothing.value, nothing.interval, nothing.reason) == (None, None, Reason.NO_TASKS)
    assert (one.value, one.interval, one.reason) == (pytest.approx(55), None, Reason.ONE_CLUSTER)
    assert (same.value, same.interval, same.reason) == (pytest.approx(60), None, Reason.NO_SPREAD)


def test_few_clusters_get_students_t() -> None:
    (found,) = mean_estimates(np.linspace(0.1, 0.9, 9)[:, np.newaxis], None)
    assert found.interval is not None
    assert found.interval.method == "cluster-t"


def test_labels_must_fit() -> None:
    with pytest.raises(ValueError, match="one cluster label a task"):
        mean_estimates(np.zeros((3, 1)), [1, 2])


def test_groups_of_tasks_and_an_arm_without_a_score() -> None:
    table = np.array([[3, 3, 2, 1], [3, 2, 2, 1]])
    groups = figures_by_group(table, 2, ["easy", "easy", "hard", "none"])
    assert list(groups) == ["easy", "hard", "none"]
    assert groups["easy"].valid_only["gap"].value == pytest.approx(25)
    assert groups["hard"].valid_only["gap"].value == 0
    assert groups["none"].invalid_as_fail["gap"].reason is Reason.NO_VALID_TRIAL
    whole = arm_figures(table, 2)
    assert whole.figures.mean_at_k_pct_bounds == (37.5, 62.5)
    assert whole.figures.pass_hat_k_pct_bounds == (25, 50)
    assert whole.valid_only["gap"].tasks == 3
    assert arm_figures(table[:1], 1).valid_only["disagreement"].reason is Reason.ONE_RUN
    with pytest.raises(ValueError, match="one group label a task"):
        figures_by_group(table, 2, ["easy"])


@pytest.mark.parametrize(("tasks", "size", "shared"), [(92, 1, 0.0), (30, 1, 0.0), (168, 3, 0.8)])
def test_coverage(tasks: int, size: int, shared: float) -> None:
    """Rates redrawn from a Beta in each experiment; truth is its expectation. 1200 experiments: ±1.3 points."""
    source, k, clusters = BetaRates(2.0, 0.7, size, shared), 5, tasks // size
    random = np.random.default_rng(11)
    drawn = source.draw(random, 1200, clusters).rates.reshape(1200, -1)
    first, second = (random.binomial(k, drawn) for _ in range(2))
    labels = np.repeat(np.arange(clusters), size)
    mean, always = source.power_mean(1), source.power_mean(k)
    truth = 100 * np.array([mean, always, mean - always])
    covered = np.zeros((2, 3))
    for a, b in zip(first, second, strict=True):
        x, y = (np.stack([c / k, c == k, c / k - (c == k)], axis=1) for c in (a, b))
        arm = mean_estimates(x, labels, RATE, resamples=999)
        difference = mean_estimates(y - x, labels, DIFFERENCE, method="cluster-t")
        for row, (estimates, true) in enumerate([(arm, truth), (difference, np.zeros(3))]):
            for column, estimate in enumerate(estimates):
                assert estimate.interval is not None
                covered[row, column] += estimate.interval.low <= true[column] <= estimate.interval.high
    # 30 tasks give the conservative side: Pass^k there has few clusters that differ.
    assert (covered / 1200 >= 0.93).all()
    assert (covered / 1200 <= (0.99 if tasks == 30 else 0.975)).all()
