"""Execution records put through the analysis: one arm, and a group of arms."""

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from xspec.analysis.aa import AA, compare_executions, run_noise
from xspec.analysis.arm import ArmFigures, arm_figures, figures_by_group
from xspec.analysis.attribution import attribution_of
from xspec.analysis.chains import divergence_of
from xspec.analysis.compare import compare_arms
from xspec.analysis.factorial import CELLS, FactorialEffect, factorial
from xspec.analysis.goal_completion import goal_completion, goal_completion_by_group
from xspec.analysis.invalid_share import compare_invalid
from xspec.analysis.outliers import review_runs
from xspec.analysis.resampling import cluster_numbers
from xspec.analysis.trajectory import LEVELS, StepTaken, encode
from xspec.records.scenarios import scenario_sizes
from xspec.report.execution_record import ExecutionRecord
from xspec.report.failures import failures
from xspec.report.statistics import ArmStatistics, GoalFigures, GroupStatistics, Pair, Reconciliation

Table = NDArray[np.int64]
_DIVIDED_BY = ("stratum", "difficulty")


def analyse_arm(chosen: ExecutionRecord, others: Sequence[ExecutionRecord]) -> ArmStatistics:
    """`others` are the other complete executions of the spec, each compared with the chosen one."""
    spec, table = chosen.spec, chosen.outcomes()
    clusters = _clusters(chosen)
    retries, tokens = np.zeros(spec.k, dtype=np.int64), np.zeros(spec.k, dtype=np.int64)
    for trial in chosen.trials:
        retries[trial.run] += trial.retry_count
        tokens[trial.run] += trial.prompt_tokens + trial.completion_tokens
    trajectories = _trajectories(chosen)
    encoded = encode(trajectories) if trajectories is not None else None
    aa: dict[str, AA] = {
        other.execution_id: compare_executions(table, other.outcomes(), spec.k, clusters) for other in others
    }
    return ArmStatistics(
        estimates=arm_figures(table, spec.k, clusters),
        groups=_by_group(chosen, table, clusters),
        goals=_goals(chosen, table, clusters),
        noise=run_noise(table, spec.k),
        review=review_runs(table, retries.tolist(), None if chosen.tokens_unknown else tokens.tolist()),
        failures=failures(chosen.trials),
        reconciliation=_reconciled(chosen, table),
        divergence={}
        if encoded is None
        else {level: divergence_of(encoded[level], level) for level in LEVELS},
        attribution=()
        if encoded is None
        else attribution_of(
            encoded["arguments"], cluster_numbers(clusters, len(spec.benchmark.tasks)), resamples=2_000
        ),
        aa=aa,
    )


def analyse_group(arms: Mapping[str, ExecutionRecord], margin_pp: float | None = None) -> GroupStatistics:
    """`arms` has the chosen execution of each spec, in the order of the report. Tasks are those of all arms."""
    ids = list(arms)
    pairs = tuple(_pair(arms[a], arms[b]) for a, b in combinations(ids, 2))
    first = next(iter(arms.values()))
    tasks = [t for t in first.spec.benchmark.tasks if all(t in r.spec.benchmark.tasks for r in arms.values())]
    k = min(record.spec.k for record in arms.values())
    tables = {spec_id: _on(record, tasks)[:k] for spec_id, record in arms.items()}
    clusters = _clusters(first, tasks)
    names = [(pair.a, pair.b) for pair in pairs]
    comparisons = [
        comparison
        for as_fail in (False, True)
        for comparison in compare_arms(
            tables, names, k, clusters, invalid_as_fail=as_fail, margin_pp=margin_pp
        )
    ]
    cells = _cells(arms)
    effects: list[FactorialEffect] = []
    if cells is not None:
        of_cell = {cell: tables[spec_id] for cell, spec_id in zip(CELLS, cells, strict=True)}
        for as_fail in (False, True):
            effects += factorial(of_cell, k, clusters, invalid_as_fail=as_fail, margin_pp=margin_pp)
    return GroupStatistics(
        pairs=pairs,
        comparisons=tuple(comparisons),
        invalid=tuple(compare_invalid(tables[a], tables[b], clusters) for a, b in names),
        effects=tuple(effects),
        cells=cells,
        margin_pp=margin_pp,
    )


def _pair(a: ExecutionRecord, b: ExecutionRecord) -> Pair:
    one, other = a.spec, b.spec
    route = (one.route.mode, one.route.members) != (other.route.mode, other.route.members)
    return Pair(a.spec_id, b.spec_id, guide=one.guide != other.guide, route=route)


def _cells(arms: Mapping[str, ExecutionRecord]) -> tuple[str, str, str, str] | None:
    """Spec ids in the order of `CELLS` if the arms are exactly two guides by two routes, one guide being none."""
    guides = list(dict.fromkeys(r.spec.guide.model_dump_json() for r in arms.values()))
    routes = list(dict.fromkeys(r.spec.route.model_dump_json() for r in arms.values()))
    if len(arms) != 4 or len(guides) != 2 or len(routes) != 2:
        return None
    at: dict[tuple[int, int], str] = {}
    for spec_id, record in arms.items():
        guided = int(record.spec.guide.kind != "none")
        floating = int(record.spec.route.mode != "fixed")
        at[guided, floating] = spec_id
    return (at[0, 0], at[1, 0], at[0, 1], at[1, 1]) if len(at) == 4 else None


def _on(record: ExecutionRecord, tasks: Sequence[str]) -> Table:
    place = {task: i for i, task in enumerate(record.spec.benchmark.tasks)}
    return record.outcomes()[:, [place[task] for task in tasks]]


def _clusters(record: ExecutionRecord, tasks: Sequence[str] | None = None) -> NDArray[np.str_]:
    """A task whose cluster isn't known is its own."""
    of_task = record.task_info
    named = [of_task.get(task, {}).get("cluster") or task for task in tasks or record.spec.benchmark.tasks]
    return np.array(named, dtype=np.str_)


def _by_group(
    record: ExecutionRecord, table: Table, clusters: NDArray[np.str_]
) -> dict[str, dict[str, ArmFigures]]:
    """Groups of tasks by each of the two properties that is known and divides them."""
    found = {}
    for name in _DIVIDED_BY:
        labels = _labels(record, name)
        if len(set(labels)) > 1:
            by_label = figures_by_group(table, record.spec.k, labels, clusters)
            found[name] = dict(sorted(by_label.items()))
    return found


def _labels(record: ExecutionRecord, name: str) -> list[str]:
    return [record.task_info.get(task, {}).get(name) or "unknown" for task in record.spec.benchmark.tasks]


def _goals(record: ExecutionRecord, table: Table, clusters: NDArray[np.str_]) -> GoalFigures | None:
    sizes = scenario_sizes(record.spec.benchmark.tasks, record.task_info)
    valid = goal_completion(table, clusters, sizes)
    as_fail = goal_completion(table, clusters, sizes, invalid_as_fail=True)
    if valid is None or as_fail is None:
        return None
    difficulties = _labels(record, "difficulty")
    by_difficulty = goal_completion_by_group(table, clusters, sizes, difficulties)
    several = len(set(difficulties)) > 1
    return GoalFigures(valid, as_fail, dict(sorted(by_difficulty.items())) if several else {})


def _trajectories(record: ExecutionRecord) -> list[list[Sequence[StepTaken] | None]] | None:
    if record.steps is None:
        return None
    valid = {(trial.run, trial.task) for trial in record.trials if trial.outcome != "invalid"}
    by_trial = record.steps.by_trial
    return [
        [
            [step.taken for step in by_trial.get((run, task), ())] if (run, task) in valid else None
            for run in range(record.spec.k)
        ]
        for task in record.spec.benchmark.tasks
    ]


def _reconciled(record: ExecutionRecord, table: Table) -> Reconciliation:
    steps = record.steps
    idle = None
    if steps is not None:
        idle = sum(
            trial.outcome == "pass"
            and not any(step.taken.calls for step in steps.by_trial.get((trial.run, trial.task), ()))
            for trial in record.trials
        )
    return Reconciliation(
        trials_expected=record.spec.k * len(record.spec.benchmark.tasks),
        trials_counted=int(np.bincount(table.ravel(), minlength=4).sum()),
        calls=sum(trial.calls for trial in record.trials),
        ledger_calls=None if steps is None else steps.calls,
        attempts=sum(trial.attempts for trial in record.trials),
        ledger_attempts=None if steps is None else steps.attempts,
        idle_passes=idle,
    )
