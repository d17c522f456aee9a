"""The whole analysis of 4 arms x 168 tasks x 5 runs with 10,000 resamples: CPU seconds, and against plain loops.

    python -m bench.analysis [--repeats 3] [--reference-resamples 8]

The reference is that of tests/analysis. Its time is linear in the number of resamples, so it is taken at two small
numbers and drawn out to 10,000; prints JSON. Imports and the making of the data are not counted. One BLAS thread.
"""

import os

# Threads would spin on products this small, and their spinning is CPU time.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import importlib.util
import json
import random as plain_random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from xspec.analysis.arm import arm_figures, figures_by_group
from xspec.analysis.attribution import attribution_of
from xspec.analysis.chains import divergence_of
from xspec.analysis.compare import compare_arms
from xspec.analysis.factorial import CELLS, factorial
from xspec.analysis.invalid_share import compare_invalid
from xspec.analysis.outliers import review_runs
from xspec.analysis.resampling import cluster_numbers, resample_counts, sign_patterns
from xspec.analysis.trajectory import LEVELS, Event, StepTaken, ToolCall, encode

TASKS, RUNS, RESAMPLES = 168, 5, 10_000
ARMS = ("baseline", "guided", "floating", "guided_floating")
PAIRS = tuple(combinations(ARMS, 2))


@dataclass(frozen=True)
class Data:
    """Outcome tables and trajectories by arm, a cluster and a difficulty by task."""

    outcomes: dict[str, Any]
    trajectories: dict[str, list[list[list[StepTaken] | None]]]
    clusters: Any
    difficulty: Any


def made() -> Data:
    """Clusters of three, 2% of the trials invalid, 6 to 14 steps a trial, events in 5% of them."""
    random = np.random.default_rng(1)
    rates = np.repeat(random.beta(1.5, 0.6, TASKS // 3), 3)
    tables, walks = {}, {}
    for place, arm in enumerate(ARMS):
        passes = random.random((RUNS, TASKS)) < 1 - (1 - rates) * (1 - 0.1 * place)
        tables[arm] = np.where(random.random(passes.shape) < 0.02, 1, np.where(passes, 3, 2))
        walks[arm] = [
            [_walk(random, task) if tables[arm][run, task] > 1 else None for run in range(RUNS)]
            for task in range(TASKS)
        ]
    return Data(tables, walks, np.arange(TASKS) // 3, random.integers(1, 4, TASKS))


def _walk(random: np.random.Generator, task: int) -> list[StepTaken]:
    steps = 6 + task % 9
    leaves, hidden, visible = random.random((3, steps))
    return [
        StepTaken(
            (ToolCall(f"tool_{step % 5}", str(random.integers(4) if leaves[step] < 0.1 else task)),),
            Event.HIDDEN if hidden[step] < 0.05 else Event.NONE,
            Event.VISIBLE if visible[step] < 0.05 else Event.NONE,
        )
        for step in range(steps)
    ]


def whole(data: Data) -> None:
    """Everything a report asks of the analysis."""
    for arm, table in data.outcomes.items():
        arm_figures(table, RUNS, data.clusters, resamples=RESAMPLES)
        figures_by_group(table, RUNS, data.difficulty, data.clusters, resamples=RESAMPLES)
        review_runs(table, [0] * RUNS, [1000] * RUNS)
        runs = encode(data.trajectories[arm])
        for level in LEVELS:
            divergence_of(runs[level], level)
        attribution_of(runs["arguments"], cluster_numbers(data.clusters, TASKS), resamples=RESAMPLES)
    cells = dict(zip(CELLS, data.outcomes.values(), strict=True))
    for flag in (False, True):
        compare_arms(
            data.outcomes,
            PAIRS,
            RUNS,
            data.clusters,
            invalid_as_fail=flag,
            margin_pp=5,
            resamples=RESAMPLES,
        )
        factorial(cells, RUNS, data.clusters, invalid_as_fail=flag, margin_pp=5, resamples=RESAMPLES)
    for a, b in PAIRS:
        compare_invalid(data.outcomes[a], data.outcomes[b], data.clusters, resamples=RESAMPLES)


def slow_whole(reference: ModuleType, data: Data, resamples: int) -> None:
    """The main part of the same by plain loops: arms, comparisons, 2x2, divergence, attribution."""
    random = plain_random.Random(1)
    clusters = data.clusters.tolist()
    tables = {arm: table.tolist() for arm, table in data.outcomes.items()}
    for flag in (False, True):
        values = {arm: reference.task_values(table, RUNS, flag) for arm, table in tables.items()}
        for figures in values.values():
            for metric in reference.METRICS:
                _slow_interval(reference, random, figures, metric, clusters, resamples)
        for a, b in PAIRS:
            shared = [task for task in values[a] if task in values[b]]
            for metric in reference.METRICS:
                found = [values[b][task][metric] - values[a][task][metric] for task in shared]
                _slow_test(reference, random, found, [clusters[task] for task in shared], resamples)
        x00, x10, x01, x11 = values.values()
        shared = [task for task in x00 if task in x10 and task in x01 and task in x11]
        labels = [clusters[task] for task in shared]
        for metric in reference.METRICS:
            cells = [[x[task][metric] for x in (x00, x10, x01, x11)] for task in shared]
            _slow_test(reference, random, [(b - a + d - c) / 2 for a, b, c, d in cells], labels, resamples)
            _slow_test(reference, random, [(c - a + d - b) / 2 for a, b, c, d in cells], labels, resamples)
            _slow_test(reference, random, [d - c - b + a for a, b, c, d in cells], labels, resamples)
    for walks in data.trajectories.values():
        plain = [
            [w and [(s.calls, int(s.call_event), int(s.observation_event)) for s in w] for w in runs]
            for runs in walks
        ]
        reference.divergence(plain)
        by_cluster: dict[int, list[Any]] = {}
        for row in reference.pair_steps(plain):
            by_cluster.setdefault(clusters[row[0]], []).append(row)
        groups = list(by_cluster.values())
        for kind in ("any", "visible", "hidden"):
            reference.hazard([row for group in groups for row in group], kind)
            for _ in range(resamples):
                reference.hazard(
                    [row for group in random.choices(groups, k=len(groups)) for row in group], kind
                )


def _slow_interval(
    reference: ModuleType,
    random: plain_random.Random,
    figures: dict[int, dict[str, float]],
    metric: str,
    clusters: Sequence[int],
    resamples: int,
) -> None:
    groups = reference.by_cluster([v[metric] for v in figures.values()], [clusters[task] for task in figures])
    draws = [random.choices(range(len(groups)), k=len(groups)) for _ in range(resamples)]
    reference.bootstrap_t(groups, draws)


def _slow_test(
    reference: ModuleType,
    random: plain_random.Random,
    values: Sequence[float],
    labels: Sequence[int],
    resamples: int,
) -> None:
    groups = reference.by_cluster(values, labels)
    reference.mean_and_se(groups)
    reference.sign_flip_p(groups, [random.choices((-1, 1), k=len(groups)) for _ in range(resamples)])


def _cpu(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def _fast(data: Data) -> float:
    # Each repetition draws anew, as a report in a fresh process does.
    resample_counts.cache_clear()
    sign_patterns.cache_clear()
    return _cpu(lambda: whole(data))


def _reference() -> ModuleType:
    path = Path(__file__).parents[1] / "tests/analysis/reference.py"
    spec = importlib.util.spec_from_file_location("analysis_reference", path)
    if spec is None or spec.loader is None:
        sys.exit(f"{path} is missing: the bench needs the tests")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--reference-resamples", type=int, default=8)
    options = parser.parse_args()
    data, reference = made(), _reference()
    fast = statistics.median(_fast(data) for _ in range(options.repeats))
    few, many = options.reference_resamples, 3 * options.reference_resamples
    at_few, at_many = (_cpu(lambda n=n: slow_whole(reference, data, n)) for n in (few, many))
    per_resample = (at_many - at_few) / (many - few)
    slow = at_few + per_resample * (RESAMPLES - few)
    print(
        json.dumps(
            {
                "arms": len(ARMS),
                "tasks": TASKS,
                "runs": RUNS,
                "resamples": RESAMPLES,
                "cpu_s": fast,
                "reference_cpu_s": slow,
                "reference_taken_at_resamples": [few, many],
                "speedup": slow / fast,
                "ratio": fast / slow,
            },
            indent=2,
        )
    )


if __name__ == "__main__":
    main()
