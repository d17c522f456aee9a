"""What would give the tasks' answers away: from their known solutions and the verdicts of a stored execution."""

from collections import defaultdict
from typing import Any

from xspec.benchmarks.pool import WorkerPool
from xspec.experiment.rehearse import kept_solutions, solutions_of
from xspec.guides.answers import Answers, answers_of
from xspec.records.executions import ExecutionFolder
from xspec.spec.models import ExperimentSpec
from xspec.spec.store import Store


async def known_answers(
    spec: ExperimentSpec, store: Store, execution: ExecutionFolder | None
) -> dict[str, Answers]:
    """By task of the manifest. Starts the benchmark's worker if its solutions are not in the store yet."""
    benchmark = spec.benchmark
    solutions = kept_solutions(benchmark, store)
    if solutions is None:
        async with WorkerPool(
            benchmark.kind, benchmark.version, benchmark.split, benchmark.settings, members=1, log=None
        ) as pool:
            solutions = await solutions_of(benchmark, store, pool)
    verdicts: dict[str, list[Any]] = defaultdict(list)
    if execution is not None:
        for trial in execution.progress().trials.values():
            verdicts[trial.task].append((trial.verdict or {}).get("detail"))
    return {
        row["id"]: answers_of(row["instruction"], solutions.get(row["id"]), verdicts[row["id"]])
        for row in store.json_blob(benchmark.manifest)["tasks"]
    }
