"""Whatever the tables hold, every number that comes out is finite, and what has no value has a reason."""

import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xspec.analysis.aa import compare_executions
from xspec.analysis.arm import arm_figures
from xspec.analysis.compare import compare_arms
from xspec.analysis.contrast import Verdict
from xspec.analysis.factorial import factorial
from xspec.analysis.intervals import Estimate
from xspec.analysis.invalid_share import compare_invalid
from xspec.analysis.outliers import review_runs
from xspec.analysis.reasons import Figure, Reason


def parts(value: Any) -> Iterator[Any]:
    """The value and everything in it."""
    yield value
    if dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from parts(getattr(value, field.name))
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from parts(each)
    elif isinstance(value, tuple | list):
        for each in value:
            yield from parts(each)


def check(result: Any) -> None:
    for part in parts(result):
        if isinstance(part, float):
            assert math.isfinite(part)
        if isinstance(part, Figure):
            assert (part.value is None) is (part.reason is not None)
        if isinstance(part, Estimate) and part.interval is None:
            assert part.reason is not None
        if isinstance(part, Estimate) and part.interval is not None and part.value is not None:
            assert part.interval.low <= part.value <= part.interval.high


def analysed(tables: list[np.ndarray[Any, Any]], k: int, labels: Any) -> Iterator[Any]:
    a, b, c, d = tables
    yield arm_figures(a, k, labels, resamples=60)
    for as_fail in (False, True):
        yield compare_arms(
            {"a": a, "b": b},
            [("a", "b"), ("b", "a")],
            k,
            labels,
            invalid_as_fail=as_fail,
            margin_pp=5,
            resamples=60,
        )
        cells = {(0, 0): a, (1, 0): b, (0, 1): c, (1, 1): d}
        yield factorial(cells, k, labels, invalid_as_fail=as_fail, margin_pp=5, resamples=60)
    yield compare_executions(a, b, k, labels, resamples=60)
    yield compare_invalid(a, b, labels, resamples=60)
    yield review_runs(a, [0] * len(a), [10] * len(a))


@settings(deadline=None, max_examples=60)
@given(
    st.integers(0, 10**6),
    st.integers(1, 4),
    st.integers(0, 16),
    st.integers(1, 4),
    st.sampled_from(["0123", "3", "2", "1", "0", "23", "13", "03", "33333333332"]),
    st.sampled_from([1, 3, 12, None]),
)
def test_random_tables(seed: int, runs: int, tasks: int, k: int, letters: str, clusters: int | None) -> None:
    random = np.random.default_rng(seed)
    codes = np.array([int(letter) for letter in letters])
    tables = [random.choice(codes, (runs, tasks)) for _ in range(4)]
    labels = None if clusters is None else random.integers(0, clusters, tasks)
    for result in analysed(tables, k, labels):
        check(result)


@pytest.mark.parametrize("code", [2, 3])
def test_all_pass_and_all_fail(code: int) -> None:
    table = np.full((5, 40), code)
    for result in analysed([table] * 4, 5, None):
        check(result)
    gap = arm_figures(table, 5).valid_only["gap"]
    assert (gap.value, gap.reason) == (0, Reason.NO_SPREAD)
    assert gap.interval is not None
    assert gap.interval.high == pytest.approx(100 * (1 - 0.05 ** (1 / 40)))
    (row,) = (row for row in compare_arms({"a": table, "b": table}, [("a", "b")], 5) if row.metric == "gap")
    assert (row.contrast.p.value, row.verdict) == (1, Verdict.INCONCLUSIVE)
    assert row.contrast.mde_pp.reason is Reason.NO_SPREAD


def test_every_reason_has_a_sentence() -> None:
    assert all(reason.sentence and not reason.sentence.endswith(".") for reason in Reason)
