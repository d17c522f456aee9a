"""How consistent an agent is, from the outcomes of its trials.

The input is a table of outcome codes, runs by tasks. For task i: n_i valid trials, c_i passes, p_i = c_i/n_i.
A task is *complete* when n_i ≥ k, and every figure "@k" or "^k" is taken over the complete tasks, both terms
of a gap over the same ones: failing and long trials turn invalid more often, so different task sets would
bias the difference. Beside them stand the figures with every invalid trial counted as failed, over the tasks
none of whose trials is missing.

Results are in percent, differences in percentage points. Where nothing can be said the value is None, never
NaN; a table without a single valid trial has no score at all, not even with invalid counted as failed.
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class OutcomeCode(IntEnum):
    """What became of a trial, as it stands in an outcome table. A table of zeros is one of missing trials."""

    MISSING = 0
    INVALID = 1
    FAIL = 2
    PASS = 3


@dataclass(frozen=True, slots=True)
class TrialCounts:
    """How many trials ended how; the four add up to runs times tasks."""

    passed: int
    failed: int
    invalid: int
    missing: int

    @property
    def valid(self) -> int:
        return self.passed + self.failed

    @property
    def total(self) -> int:
        return self.passed + self.failed + self.invalid + self.missing


@dataclass(frozen=True, slots=True)
class Consistency:
    """The figures of one outcome table. `complete` and `incomplete` hold column numbers of the table.

    The `…_invalid_as_fail` figures and the bounds (every invalid trial a pass or a fail) are over the tasks without
    a missing trial. `run_pct` is the pass share of each run over its valid trials; its maximum and minimum drift
    apart as k grows, so always state k.
    """

    k: int
    runs: int
    tasks: int
    trials: TrialCounts
    complete: tuple[int, ...]
    incomplete: tuple[int, ...]
    mean_at_k_pct: float | None
    pass_hat_k_pct: float | None
    pass_at_k_pct: float | None
    gap_pp: float | None
    flip_rate_pct: float | None
    disagreement_pct: float | None
    mean_at_k_pct_invalid_as_fail: float | None
    pass_hat_k_pct_invalid_as_fail: float | None
    gap_pp_invalid_as_fail: float | None
    mean_at_k_pct_bounds: tuple[float, float] | None
    pass_hat_k_pct_bounds: tuple[float, float] | None
    gap_pp_bounds: tuple[float, float] | None
    run_pct: tuple[float | None, ...]
    best_run_pct: float | None
    worst_run_pct: float | None


def pass_hat(passes: Ints, valid: Ints, k: int) -> Floats:
    """Per task C(c,k)/C(n,k): the chance that k of its trials all passed (τ-bench, arXiv 2406.12045).

    Any shape; every n must be at least k. With n = k it is 1 for a task that passed every time, else 0.
    """
    return _all_drawn(passes, valid, k)


def pass_at(passes: Ints, valid: Ints, k: int) -> Floats:
    """Per task 1 - C(n-c,k)/C(n,k): the chance that one of k passed (Chen 2021, arXiv 2107.03374).

    Any shape; every n must be at least k.
    """
    return 1.0 - _all_drawn(valid - passes, valid, k)


def gap_of_tasks(passes: Ints, valid: Ints, k: int) -> Floats:
    """Per task g_i = p_i - C(c_i,k)/C(n_i,k). Its mean is the gap, Mean@k - Pass^k: arXiv 2609.08832.

    With n = k, g_i = c_i/k - [c_i = k]. Never negative. Any shape; every n must be at least k.
    """
    _require_enough(valid, k)
    return np.asarray(passes / valid - pass_hat(passes, valid, k), dtype=np.float64)


def disagreement_of_tasks(passes: Ints, valid: Ints) -> Floats:
    """Per task Pass@2 - Pass^2 = 2c(n-c)/(n(n-1)): the chance that two runs differ, unbiased for 2p(1-p).

    Any shape; every n must be at least 2.
    """
    _require_enough(valid, 2)
    return np.asarray(2.0 * passes * (valid - passes) / (valid * (valid - 1)), dtype=np.float64)


def consistency(outcomes: ArrayLike, k: int) -> Consistency:
    """All figures of a table of `OutcomeCode`, runs by tasks, at the spec's k; more than k runs are fine.

    Raises ValueError when the table is not two-dimensional, holds other codes, or k is below 1.
    """
    table = checked_table(outcomes, k)
    runs, tasks = table.shape
    is_pass, is_invalid, is_missing = (
        table == code for code in (OutcomeCode.PASS, OutcomeCode.INVALID, OutcomeCode.MISSING)
    )
    is_valid = table >= OutcomeCode.FAIL
    passes, valid = is_pass.sum(axis=0), is_valid.sum(axis=0)
    complete = valid >= k
    c, n = passes[complete], valid[complete]
    twice = n >= 2

    # With invalid trials as failures every task without a missing trial has all its `runs` trials. But an arm
    # that was refused on every call has no score: a 0 would say something about the agent.
    has_score = runs >= k and bool(is_valid.any())
    carried_out = ~is_missing.any(axis=0) & has_score
    c_all, invalid = passes[carried_out], is_invalid.sum(axis=0)[carried_out]
    n_all = np.full_like(c_all, runs)

    run_valid = is_valid.sum(axis=1)
    run_pct = tuple(
        float(100.0 * p / v) if v else None for p, v in zip(is_pass.sum(axis=1), run_valid, strict=True)
    )
    scored = [share for share in run_pct if share is not None]
    return Consistency(
        k=k,
        runs=runs,
        tasks=tasks,
        trials=TrialCounts(
            passed=int(passes.sum()),
            failed=int((valid - passes).sum()),
            invalid=int(is_invalid.sum()),
            missing=int(is_missing.sum()),
        ),
        complete=tuple(np.flatnonzero(complete).tolist()),
        incomplete=tuple(np.flatnonzero(~complete).tolist()),
        mean_at_k_pct=_mean_pct(c / n),
        pass_hat_k_pct=_mean_pct(pass_hat(c, n, k)),
        pass_at_k_pct=_mean_pct(pass_at(c, n, k)),
        gap_pp=_mean_pct(gap_of_tasks(c, n, k)),
        flip_rate_pct=_mean_pct((c > 0) & (c < n)),
        disagreement_pct=_mean_pct(disagreement_of_tasks(c[twice], n[twice])),
        mean_at_k_pct_invalid_as_fail=_mean_pct(c_all / n_all),
        pass_hat_k_pct_invalid_as_fail=_mean_pct(pass_hat(c_all, n_all, k)),
        gap_pp_invalid_as_fail=_mean_pct(gap_of_tasks(c_all, n_all, k)),
        mean_at_k_pct_bounds=_both(
            _mean_pct(c_all / n_all),
            _mean_pct((c_all + invalid) / n_all),
        ),
        pass_hat_k_pct_bounds=_both(
            _mean_pct(pass_hat(c_all, n_all, k)),
            _mean_pct(pass_hat(c_all + invalid, n_all, k)),
        ),
        gap_pp_bounds=_gap_bounds(c_all, n_all, invalid, k),
        run_pct=run_pct,
        best_run_pct=max(scored, default=None),
        worst_run_pct=min(scored, default=None),
    )


def _both(low: float | None, high: float | None) -> tuple[float, float] | None:
    return None if low is None or high is None else (low, high)


def _gap_bounds(passes: Ints, trials: Ints, invalid: Ints, k: int) -> tuple[float, float] | None:
    """Lowest and highest gap over every way the invalid trials could have come out.

    Not simply "all pass" and "all fail": each invalid trial turned into a pass widens a task's gap, until the
    last one closes it. So each task's extremes are sought over all numbers of extra passes.
    """
    if passes.size == 0:
        return None
    extra = np.arange(int(invalid.max()) + 1)[:, np.newaxis]
    gaps = gap_of_tasks(passes + np.minimum(extra, invalid), trials + np.zeros_like(extra), k)
    return float(100.0 * gaps.min(axis=0).mean()), float(100.0 * gaps.max(axis=0).mean())


def _all_drawn(marked: Ints, total: Ints, k: int) -> Floats:
    """C(marked,k)/C(total,k) as a product of ratios, which neither overflows nor loses the exact 0 and 1."""
    _require_enough(total, k)
    share = np.ones(np.broadcast_shapes(marked.shape, total.shape))
    for j in range(k):
        share *= np.maximum(marked - j, 0) / (total - j)
    return share


def _require_enough(total: Ints, k: int) -> None:
    if total.size and int(total.min()) < k:
        raise ValueError(f"a task with {int(total.min())} trials has no figure at k = {k}; leave it out")


def _mean_pct(per_task: NDArray[np.float64] | NDArray[np.bool_]) -> float | None:
    return float(100.0 * per_task.mean()) if per_task.size else None


def checked_table(outcomes: ArrayLike, k: int) -> Ints:
    """The table as integers. Raises ValueError for what is no outcome table and for k below 1."""
    table = np.asarray(outcomes)
    if table.ndim != 2:
        raise ValueError(f"an outcome table has two dimensions, runs and tasks, not {table.ndim}")
    if k < 1:
        raise ValueError(f"k is at least 1, not {k}")
    codes = np.issubdtype(table.dtype, np.integer) and np.isin(table, list(OutcomeCode)).all()
    if table.size and not codes:
        known = ", ".join(f"{code.value} {code.name}" for code in OutcomeCode)
        raise ValueError(f"an outcome table holds only the codes {known}")
    return table.astype(np.int64)
