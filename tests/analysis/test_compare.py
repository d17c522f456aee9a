"""Two arms: pairing, the sign-flip test, Holm, equivalence, and what duplicated runs must not do."""

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from xspec.analysis.compare import Comparison, compare_arms
from xspec.analysis.contrast import Verdict, contrasts
from xspec.analysis.holm import holm
from xspec.analysis.invalid_share import compare_invalid
from xspec.analysis.permutation import sign_flip_p
from xspec.analysis.rates import BetaRates
from xspec.analysis.reasons import Reason
from xspec.analysis.resampling import sign_patterns
from xspec.analysis.task_figures import METRICS

FIXTURES = [HealthCheck.function_scoped_fixture]


def by_metric(found: tuple[Comparison, ...]) -> dict[str, Comparison]:
    return {comparison.metric: comparison for comparison in found}


@settings(deadline=None, max_examples=30, suppress_health_check=FIXTURES)
@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(10, 18), st.booleans())
def test_a_comparison_equals_the_reference(
    reference: ModuleType, outcomes_of: Any, seed: int, k: int, tasks: int, as_fail: bool
) -> None:
    """On the tasks complete in both arms, exact test up to 13 clusters and the same patterns beyond."""
    random = np.random.default_rng(seed)
    a, b = (outcomes_of(random, k, tasks, 0.05) for _ in range(2))
    labels = random.integers(0, 14, tasks)
    found = by_metric(
        compare_arms({"a": a, "b": b}, [("a", "b")], k, labels, invalid_as_fail=as_fail, resamples=200)
    )
    one, other = (reference.task_values(table.tolist(), k, as_fail) for table in (a, b))
    shared = [task for task in one if task in other]
    for metric, row in found.items():
        assert row.left_out == tuple(task for task in range(tasks) if task not in shared)
        if not shared or (metric == "disagreement" and k == 1):
            assert row.contrast.difference.value is None
            continue
        differences = [other[task][metric] - one[task][metric] for task in shared]
        groups = reference.by_cluster(differences, labels[shared].tolist())
        mean, se = reference.mean_and_se(groups)
        assert row.contrast.difference.value == pytest.approx(100 * mean)
        assert row.contrast.difference.se == pytest.approx(100 * se)
        if len(groups) < 10:
            assert row.contrast.p.reason is Reason.FEW_CLUSTERS
        else:
            signs, exact = sign_patterns(len(groups), 199, 20260915)
            patterns = None if exact else signs.tolist()
            assert row.contrast.p.value == pytest.approx(reference.sign_flip_p(groups, patterns))


def test_sign_flip_agrees_with_the_listing_of_all_patterns(reference: ModuleType) -> None:
    """With many clusters the drawn p is close to the exact one."""
    sums = np.random.default_rng(2).normal(0.4, 1, 15)
    exact = reference.sign_flip_p([[value] for value in sums])
    assert float(sign_flip_p(sums[:, np.newaxis])[0]) == pytest.approx(exact, abs=0.01)


def test_no_p_value_below_ten_clusters_whatever_the_tasks() -> None:
    (found,) = contrasts(
        np.full((90, 1), 0.5) + np.random.default_rng(1).normal(0, 0.1, (90, 1)), np.arange(90) % 9
    )
    assert (found.p.value, found.p.reason) == (None, Reason.FEW_CLUSTERS)
    assert found.mde_pp.reason is Reason.FEW_CLUSTERS
    assert found.difference.interval is not None
    assert found.verdict() is Verdict.UNDEFINED


def test_runs_are_not_paired_with_runs(outcomes_of: Any) -> None:
    """Shuffling the runs of one arm changes nothing."""
    random = np.random.default_rng(5)
    a, b = (outcomes_of(random, 5, 30, 0.0) for _ in range(2))
    one = compare_arms({"a": a, "b": b}, [("a", "b")], 5, resamples=500)
    other = compare_arms({"a": a, "b": random.permutation(b)}, [("a", "b")], 5, resamples=500)
    assert one == other


def test_duplicated_runs_do_not_create_significance(outcomes_of: Any) -> None:
    """microsoft/SkillOpt#242: ten copies of each run are no more tasks. Mean@k has the same p and interval."""
    random = np.random.default_rng(6)
    a, b = (outcomes_of(random, 3, 40, 0.0) for _ in range(2))
    once = by_metric(compare_arms({"a": a, "b": b}, [("a", "b")], 3))
    tiled = {"a": np.tile(a, (10, 1)), "b": np.tile(b, (10, 1))}
    many = by_metric(compare_arms(tiled, [("a", "b")], 30))
    for metric in ("mean_at_k", "pass_hat_k", "pass_at_k", "gap", "flip_rate"):
        first, second = once[metric].contrast, many[metric].contrast
        assert second.p == first.p
        assert first.difference.interval is not None
        assert second.difference.interval is not None
        assert second.difference.interval.low == pytest.approx(first.difference.interval.low)
        assert second.difference.interval.high == pytest.approx(first.difference.interval.high)


def test_an_arm_and_its_copy_differ_by_nothing(outcomes_of: Any) -> None:
    table = outcomes_of(np.random.default_rng(7), 5, 92, 0.0)
    found = by_metric(compare_arms({"a": table, "b": table}, [("a", "b")], 5, margin_pp=5))["gap"]
    assert (found.contrast.difference.value, found.contrast.p.value) == (0, 1)
    assert found.contrast.difference.interval is not None
    assert found.contrast.difference.interval.high == pytest.approx(100 * (1 - 0.05 ** (1 / 92)))
    assert found.contrast.p_equivalent.value == pytest.approx(0.95**92)
    assert found.verdict is Verdict.EQUIVALENT


def test_holm_is_over_the_gaps_of_all_pairs_and_nothing_else(outcomes_of: Any) -> None:
    random = np.random.default_rng(8)
    tables = {arm: outcomes_of(random, 5, 40, 0.05) for arm in "abcd"}
    pairs = [("a", "b"), ("a", "c"), ("b", "d")]
    found = compare_arms(tables, pairs, 5)
    gaps = [row for row in found if row.metric == "gap"]
    assert [row.p_holm.value for row in gaps] == pytest.approx(holm([row.contrast.p.value for row in gaps]))
    assert {row.p_holm.reason for row in found if row.metric != "gap"} == {Reason.SECONDARY}
    assert len(found) == len(pairs) * len(METRICS)


@settings(deadline=None, suppress_health_check=FIXTURES)
@given(st.lists(st.floats(0, 1), max_size=7))
def test_holm_equals_the_reference(reference: ModuleType, p_values: list[float]) -> None:
    assert holm(p_values) == pytest.approx(reference.holm(p_values))
    # What was not tested is no member of the family.
    assert holm([None, *p_values]) == [None, *holm(p_values)]


@pytest.mark.parametrize("sign", [1, -1])
def test_equivalence_needs_the_whole_interval_within_the_margin(sign: int) -> None:
    """The 90% interval, as TOST at 5% is: 1.6618 is the 95% quantile of Student's t with 91 degrees."""
    values = sign * np.random.default_rng(9).normal(0.03, 0.2, (92, 1))
    farthest = abs(values.mean()) + 1.6618 * values.std(ddof=1) / np.sqrt(92)
    wide, narrow = (contrasts(values, None, margin_pp=100 * farthest + off)[0] for off in (0.05, -0.05))
    assert wide.p_equivalent.value is not None
    assert narrow.p_equivalent.value is not None
    assert wide.p_equivalent.value < 0.05 < narrow.p_equivalent.value
    assert wide.verdict() is Verdict.EQUIVALENT
    assert contrasts(values, None)[0].p_equivalent.reason is Reason.NO_MARGIN
    with pytest.raises(ValueError, match="margin"):
        contrasts(values, None, margin_pp=0)


def test_a_found_difference_has_its_direction() -> None:
    up, down = (
        contrasts(np.full((20, 1), 0.3) * sign + 0.01 * np.arange(20)[:, None], None)[0] for sign in (1, -2)
    )
    assert (up.verdict(), down.verdict()) == (Verdict.HIGHER, Verdict.LOWER)


def test_an_arm_without_a_valid_trial_is_not_compared() -> None:
    good, dead = np.full((3, 20), 3), np.full((3, 20), 1)
    for as_fail in (False, True):
        found = compare_arms({"a": good, "b": dead}, [("a", "b")], 3, invalid_as_fail=as_fail)
        assert {row.contrast.difference.reason for row in found} == {Reason.NO_VALID_TRIAL}
        assert {row.verdict for row in found} == {Verdict.UNDEFINED}
    share = compare_invalid(good, dead)
    assert (share.a_pct.value, share.b_pct.value, share.contrast.difference.value) == (0, 100, 100)
    assert share.contrast.p.value == pytest.approx(1e-4, rel=0.5)
    assert compare_invalid(np.zeros((2, 4), int), good[:2, :4]).a_pct.reason is Reason.NO_TASKS
    with pytest.raises(ValueError, match="same tasks"):
        compare_invalid(good, dead[:, :3])
    with pytest.raises(ValueError, match="same tasks"):
        compare_arms({"a": good, "b": dead[:, :3]}, [("a", "b")], 3)


@pytest.mark.parametrize(("tasks", "size", "shared"), [(92, 1, 0.0), (30, 3, 0.8)])
def test_false_positives_stay_at_seven_percent(tasks: int, size: int, shared: float) -> None:
    """Two executions of one spec, 2000 times, at a nominal 5%. For Pass^k with few clusters it is far below."""
    random, clusters = np.random.default_rng(12), tasks // size
    rates = BetaRates(2.0, 0.7, size, shared).draw(random, 2000, clusters).rates
    a, b = (random.binomial(5, rates) for _ in range(2))
    for figure in (lambda c: c / 5, lambda c: (c == 5) * 1.0, lambda c: c / 5 - (c == 5)):
        p = sign_flip_p((figure(b) - figure(a)).sum(axis=2).T.copy(), 999)
        assert (p <= 0.05).mean() <= 0.07


def test_ignoring_clusters_would_be_caught() -> None:
    """The same differences within a cluster: taken as tasks of their own they reject far too often."""
    random = np.random.default_rng(13)
    sums = np.repeat(random.normal(0, 1, (20, 500)), 5, axis=0)
    assert (sign_flip_p(sums, 499) <= 0.05).mean() > 0.2
    assert (sign_flip_p(sums[::5].copy(), 499) <= 0.05).mean() < 0.08
