"""Runs that stand out, and runs that only seem to."""

import numpy as np
import pytest

from xspec.analysis.outliers import LookAt, review_runs
from xspec.analysis.reasons import Reason

RANDOM = np.random.default_rng(31)
OUTCOMES = np.where(RANDOM.random((5, 92)) < 0.7, 3, 2)
TOKENS = [500_000, 505_000, 498_000, 510_000, 502_000]


def named(
    retries: list[int], tokens: list[int] = TOKENS, outcomes: np.ndarray = OUTCOMES
) -> list[tuple[str, int]]:  # type: ignore[type-arg]
    return [(outlier.figure, outlier.run) for outlier in review_runs(outcomes, retries, tokens).outliers]


def test_a_run_with_many_retries_points_at_the_route() -> None:
    review = review_runs(OUTCOMES, [2, 3, 41, 1, 2], TOKENS)
    (outlier,) = review.outliers
    assert (outlier.figure, outlier.run, outlier.value, outlier.median) == ("retry_count", 2, 41, 2)
    assert outlier.look_at is LookAt.ROUTE
    assert outlier.score > 3.5
    assert review.runs[2].retry_count == 41
    assert review.runs[2].total_tokens == 498_000


@pytest.mark.parametrize("retries", [[0, 0, 0, 0, 1], [0, 0, 0, 0, 3], [100, 101, 100, 99, 112], [0] * 5])
def test_what_chance_explains_is_no_outlier(retries: list[int]) -> None:
    """The median absolute deviation is 0 or nearly so; the spread of counts is not."""
    assert named(retries) == []


def test_tokens_and_pass_share() -> None:
    assert named([0] * 5, [500_000, 500_000, 900_000, 500_000, 500_000]) == [("total_tokens", 2)]
    collapsed = OUTCOMES.copy()
    collapsed[4] = 2
    assert named([0] * 5, TOKENS, collapsed) == [("pass_pct", 4)]


def test_low_runs_count_too_and_carry_their_sign() -> None:
    (outlier,) = review_runs(OUTCOMES, [0] * 5, [500_000, 500_000, 100_000, 500_000, 500_000]).outliers
    assert outlier.score < -3.5


def test_no_outlier_among_two_runs() -> None:
    review = review_runs(OUTCOMES[:2], [0, 90], TOKENS[:2])
    assert (review.outliers, review.reason) == ((), Reason.FEW_RUNS)
    assert len(review.runs) == 2


def test_a_run_without_a_valid_trial_has_no_share() -> None:
    dead = OUTCOMES.copy()
    dead[1] = 1
    assert review_runs(dead, [0] * 5, TOKENS).runs[1].pass_pct is None


def test_same_shares_in_every_run_and_one_task_missed() -> None:
    steady = np.full((5, 30), 3)
    steady[3, 7] = 2
    assert named([0] * 5, TOKENS, steady) == []


def test_a_number_a_run() -> None:
    with pytest.raises(ValueError, match=r"shorter|longer"):
        review_runs(OUTCOMES, [0] * 4, TOKENS)


def test_a_run_that_is_under_way_is_no_measure_of_the_others() -> None:
    """Interrupted after the first trial of many; then in the middle of the last of five runs."""
    begun = np.zeros((3, 20), dtype=int)
    begun[0, 0] = 3
    review = review_runs(begun, [0, 0, 0], [1_372, 0, 0])
    assert (review.outliers, review.reason) == ((), Reason.FEW_RUNS)
    last = OUTCOMES.copy()
    last[4, 10:] = 0
    assert named([40, 41, 40, 42, 4], [*TOKENS[:4], 50_000], last) == []
