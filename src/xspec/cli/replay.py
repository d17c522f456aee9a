"""`python -m xspec replay EXECUTION[/RUN/TASK]`: stored replies, served again to the same loop and a fresh world."""

import asyncio
import os
from collections.abc import Sequence

from xspec.benchmarks.pool import WorkerPool
from xspec.cli.parser import VerbParser
from xspec.counted import counted
from xspec.errors import StoreError
from xspec.experiment.replay import UNREPLAYABLE, Replayed, Replayer, keep_result
from xspec.experiment.resources import check_manifest
from xspec.records.executions import ExecutionFolder, execution_named
from xspec.records.rows import Trial
from xspec.spec.store import Store

SHOWN = 10


def main(arguments: list[str]) -> int:
    parser = VerbParser(
        prog="python -m xspec replay",
        description="Serves stored replies again: same requests, observations, verdict? Exit code 1 if not.",
    )
    parser.add_argument(
        "what", metavar="EXECUTION[/RUN/TASK]", help="an execution id (or its beginning), or one trial"
    )
    parser.add_argument("--store", default="mlruns", metavar="PATH")
    options = parser.parse_args(arguments)
    store = Store(options.store, create=False)
    folder, trials, whole = _chosen(store, options.what)
    results = asyncio.run(_replay_all(store, folder, trials))
    if whole:
        keep_result(folder, results)
    differing = [result for result in results if result.difference is not None]
    for result in differing[:SHOWN]:
        print(f"run {result.run}, {result.task}: {result.difference}")
    if len(differing) > SHOWN:
        print(f"… and {len(differing) - SHOWN} more")
    print(f"{len(results) - len(differing)} of {counted(len(results), 'trial')} replayed identically")
    return 1 if differing else 0


def _chosen(store: Store, what: str) -> tuple[ExecutionFolder, list[Trial], bool]:
    """The execution, its replayable trials (or the one named), and whether these are all."""
    execution, _, trial = what.partition("/")
    folder = execution_named(store, execution)
    trials = [t for t in folder.progress().trials.values() if t.ended not in UNREPLAYABLE]
    if not trial:
        if not trials:
            raise StoreError(f"{folder.path.name} has no finished trial to replay")
        return folder, trials, True
    run, _, task = trial.partition("/")
    chosen = [t for t in trials if str(t.run) == run and t.task == task]
    if not chosen:
        raise StoreError(
            f"{what}: no such finished trial; name it EXECUTION/RUN/TASK, like {execution}/0/{trials[0].task}"
        )
    return folder, chosen, False


async def _replay_all(store: Store, folder: ExecutionFolder, trials: Sequence[Trial]) -> list[Replayed]:
    spec = store.spec(folder.info.spec_id)
    benchmark = spec.benchmark
    members = min(len(trials), 2 * (os.cpu_count() or 1))
    settings = benchmark.settings or {}
    async with WorkerPool(
        benchmark.kind, benchmark.version, benchmark.split, settings, members=members, log=None
    ) as pool:
        check_manifest(store, benchmark, await pool.describe())
        await pool.warm()
        replayer = Replayer(store, folder, spec, pool)
        waiting = asyncio.Semaphore(members)

        async def one(trial: Trial) -> Replayed:
            async with waiting:
                return await replayer.replay(trial)

        return list(await asyncio.gather(*(one(trial) for trial in trials)))
