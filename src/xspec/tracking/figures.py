"""The figures of an execution and of each of its runs, by the names they have in MLflow and in `metrics`.

MLflow allows neither `@` nor `^` in a name: Mean@5 is `mean_at_5_pct`, Pass^5 `pass_hat_5_pct`, Pass@5 `pass_at_5_pct`.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xspec.analysis.arm import ArmFigures, arm_figures
from xspec.analysis.consistency import OutcomeCode
from xspec.analysis.goal_completion import GoalCompletion, goal_completion, goal_completion_by_group
from xspec.analysis.task_figures import Metric
from xspec.records.parquet_rows import StintCounts
from xspec.records.scenarios import scenario_sizes
from xspec.spec.models import ExperimentSpec

_CODES = {"pass": OutcomeCode.PASS, "fail": OutcomeCode.FAIL, "invalid": OutcomeCode.INVALID}
Trials = Sequence[Mapping[str, Any]]


def figures_of(spec: ExperimentSpec, trials: Trials) -> ArmFigures:
    """Figures and intervals of the current trial rows. Rows that are no trial of the spec: the report refuses."""
    table = _outcomes_of(spec, trials)
    cluster = {trial["task"]: trial["cluster"] for trial in trials}
    clusters = np.array([cluster.get(task) or task for task in spec.benchmark.tasks], dtype=np.str_)
    return arm_figures(table, spec.k, clusters)


def goal_figures(
    spec: ExperimentSpec, trials: Trials, tasks: Mapping[str, Mapping[str, Any]]
) -> tuple[dict[str, float], list[dict[str, float]]]:
    """Task and scenario goal completion of the execution, and of each run. Empty where no cluster has several tasks.

    `tasks` has cluster and difficulty of every task of the manifest, also of those that the spec left out.
    """
    rows = [tasks.get(task, {}) for task in spec.benchmark.tasks]
    clusters = [row.get("cluster") or task for row, task in zip(rows, spec.benchmark.tasks, strict=True)]
    sizes = scenario_sizes(spec.benchmark.tasks, tasks)
    table = _outcomes_of(spec, trials)
    found = goal_completion(table, clusters, sizes)
    if found is None:
        return {}, [{} for _ in range(spec.k)]
    named = _goals(found)
    difficulties = [row.get("difficulty") or "unknown" for row in rows]
    if len(set(difficulties)) > 1:
        for label, figures in goal_completion_by_group(table, clusters, sizes, difficulties).items():
            suffix = re.sub(r"\W", "_", label)
            named |= {f"{name}_difficulty_{suffix}": value for name, value in _goals(figures).items()}
    runs = [
        {"tgc_pct": tgc, "sgc_pct": sgc}
        for tgc, sgc in zip(found.run_tgc_pct, found.run_sgc_pct, strict=True)
    ]
    return named, runs or [{} for _ in range(spec.k)]


def _goals(found: GoalCompletion) -> dict[str, float]:
    named = {"tgc_pct": found.tgc.value, "sgc_pct": found.sgc.value}
    for name, interval in (("tgc_pct", found.tgc.interval), ("sgc_pct", found.sgc.interval)):
        named[f"{name}_ci95_low"] = None if interval is None else interval.low
        named[f"{name}_ci95_high"] = None if interval is None else interval.high
    given = {name: value for name, value in named.items() if value is not None}
    return {**given, "scenarios_complete": float(found.complete)}


def _outcomes_of(spec: ExperimentSpec, trials: Trials) -> NDArray[np.int64]:
    column = {task: i for i, task in enumerate(spec.benchmark.tasks)}
    table = np.full((spec.k, len(column)), OutcomeCode.MISSING, dtype=np.int64)
    for trial in trials:
        if trial["task"] in column and 0 <= trial["run"] < spec.k:
            table[trial["run"], column[trial["task"]]] = _CODES[trial["outcome"]]
    return table


def execution_figures(estimates: ArmFigures, trials: Trials, counts: StintCounts) -> dict[str, float]:
    """Figures of the whole execution. What can't be given is left out."""
    figures = estimates.figures
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
        "total_tokens": counts.known_tokens,
        "replies_uncounted": counts.uncounted,
        "calls": sum(trial["calls"] for trial in trials),
        "attempts": counts.attempts,
        "abandoned_attempts": counts.abandoned_attempts,
        "superseded": counts.trials - len(trials),
        "waited_s": sum(trial["waited_s"] for trial in trials),
        **_intervals(estimates),
    }
    return {name: float(value) for name, value in named.items() if value is not None}


def _intervals(estimates: ArmFigures) -> dict[str, float | None]:
    """Both ends of the 95% interval of each figure."""
    k = estimates.figures.k
    names: dict[Metric, str] = {
        "gap": "gap_pp",
        "mean_at_k": f"mean_at_{k}_pct",
        "pass_hat_k": f"pass_hat_{k}_pct",
        "pass_at_k": f"pass_at_{k}_pct",
        "flip_rate": "flip_rate_pct",
        "disagreement": "disagreement_pct",
    }
    ends: dict[str, float | None] = {}
    for metric, name in names.items():
        interval = estimates.valid_only[metric].interval
        ends[f"{name}_ci95_low"] = None if interval is None else interval.low
        ends[f"{name}_ci95_high"] = None if interval is None else interval.high
    return ends


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
        "total_tokens": _tokens(mine),
        "replies_uncounted": sum(trial["replies_uncounted"] or 0 for trial in mine),
        "calls": sum(trial["calls"] for trial in mine),
        "attempts": sum(trial["attempts"] for trial in mine),
        "waited_s": sum(trial["waited_s"] for trial in mine),
    }
    return {name: float(value) for name, value in named.items() if value is not None}


def _tokens(trials: Trials) -> int | None:
    """Of those trials that know them; None if there are trials, and none of them does."""
    counts = [trial[name] for trial in trials for name in ("prompt_tokens", "completion_tokens")]
    known = [count for count in counts if count is not None]
    return sum(known) if known or not trials else None


def _outcomes(passed: int, failed: int, invalid: int, missing: int) -> dict[str, float]:
    return {
        "trials_pass": passed,
        "trials_fail": failed,
        "trials_invalid": invalid,
        "trials_missing": missing,
    }
