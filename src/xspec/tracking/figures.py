"""The figures of an execution and of each of its runs, by the names they have in MLflow and in `metrics`.

MLflow allows neither `@` nor `^` in a name: Mean@5 is `mean_at_5_pct`, Pass^5 `pass_hat_5_pct`, Pass@5 `pass_at_5_pct`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from xspec.analysis.consistency import Consistency, OutcomeCode, consistency
from xspec.records.parquet_rows import StintCounts
from xspec.spec.models import ExperimentSpec

_CODES = {"pass": OutcomeCode.PASS, "fail": OutcomeCode.FAIL, "invalid": OutcomeCode.INVALID}
Trials = Sequence[Mapping[str, Any]]


def consistency_of(spec: ExperimentSpec, trials: Trials) -> Consistency:
    """Figures of the current trial rows. Rows that are no trial of the spec are the report's to refuse."""
    column = {task: i for i, task in enumerate(spec.benchmark.tasks)}
    table = np.full((spec.k, len(column)), OutcomeCode.MISSING, dtype=np.int64)
    for trial in trials:
        if trial["task"] in column and 0 <= trial["run"] < spec.k:
            table[trial["run"], column[trial["task"]]] = _CODES[trial["outcome"]]
    return consistency(table, spec.k)


def execution_figures(figures: Consistency, trials: Trials, counts: StintCounts) -> dict[str, float]:
    """Figures of the whole execution. What can't be given is left out."""
    k = figures.k
    low, high = figures.gap_pp_bounds or (None, None)
    ended = figures.trials.total - figures.trials.missing
    named: dict[str, float | None] = {
        "gap_pp": figures.gap_pp,  # first, because MLflow's compare page begins with the first
        f"mean_at_{k}_pct": figures.mean_at_k_pct,
        f"pass_hat_{k}_pct": figures.pass_hat_k_pct,
        f"pass_at_{k}_pct": figures.pass_at_k_pct,
        f"mean_at_{k}_pct_invalid_as_fail": figures.mean_at_k_pct_invalid_as_fail,
        f"pass_hat_{k}_pct_invalid_as_fail": figures.pass_hat_k_pct_invalid_as_fail,
        "gap_pp_invalid_as_fail": figures.gap_pp_invalid_as_fail,
        "gap_pp_lowest": low,
        "gap_pp_highest": high,
        "flip_rate_pct": figures.flip_rate_pct,
        "disagreement_pct": figures.disagreement_pct,
        "best_run_pct": figures.best_run_pct,
        "worst_run_pct": figures.worst_run_pct,
        "tasks_complete": len(figures.complete),
        **_outcomes(
            figures.trials.passed, figures.trials.failed, figures.trials.invalid, figures.trials.missing
        ),
        "invalid_share_pct": 100 * figures.trials.invalid / ended if ended else None,
        "retry_count": sum(trial["retry_count"] for trial in trials),
        "total_tokens": counts.tokens,
        "calls": sum(trial["calls"] for trial in trials),
        "attempts": counts.attempts,
        "abandoned_attempts": counts.abandoned_attempts,
        "superseded": counts.trials - len(trials),
        "waited_s": sum(trial["waited_s"] for trial in trials),
    }
    return {name: float(value) for name, value in named.items() if value is not None}


def run_figures(spec: ExperimentSpec, run: int, trials: Trials) -> dict[str, float]:
    """Figures of one run, from its current trials alone."""
    mine = [trial for trial in trials if trial["run"] == run]
    count = {name: sum(trial["outcome"] == name for trial in mine) for name in _CODES}
    valid = count["pass"] + count["fail"]
    named: dict[str, float | None] = {
        "pass_share_pct": 100 * count["pass"] / valid if valid else None,
        **_outcomes(count["pass"], count["fail"], count["invalid"], len(spec.benchmark.tasks) - len(mine)),
        "invalid_share_pct": 100 * count["invalid"] / len(mine) if mine else None,
        "retry_count": sum(trial["retry_count"] for trial in mine),
        "total_tokens": sum(trial["prompt_tokens"] + trial["completion_tokens"] for trial in mine),
        "calls": sum(trial["calls"] for trial in mine),
        "attempts": sum(trial["attempts"] for trial in mine),
        "waited_s": sum(trial["waited_s"] for trial in mine),
    }
    return {name: float(value) for name, value in named.items() if value is not None}


def _outcomes(passed: int, failed: int, invalid: int, missing: int) -> dict[str, float]:
    return {
        "trials_pass": passed,
        "trials_fail": failed,
        "trials_invalid": invalid,
        "trials_missing": missing,
    }
