"""Whether a benchmark's verdicts mean something: doing nothing must fail where the known solution passes."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xspec.benchmarks.pool import WorkerPool

TIMEOUT_S = 120.0


@dataclass(frozen=True, slots=True)
class TaskCheck:
    """Verdicts on a world where nothing was done and one where the solution was played; None: unknown."""

    task: str
    do_nothing: bool | None
    solution: bool | None


async def check_tasks(pool: WorkerPool) -> list[TaskCheck]:
    """Checks every task of the pool's manifest, as many at once as the pool has members."""
    await pool.warm()
    manifest, solutions = await pool.describe(), await pool.solutions()
    tasks = [entry["id"] for entry in manifest["tasks"]]
    return list(await asyncio.gather(*(_check(pool, task, solutions.get(task)) for task in tasks)))


def unexplained(checks: Sequence[TaskCheck], excluded: Collection[str]) -> list[str]:
    """One sentence for each task that is not as it should be, given those the configuration excludes."""
    found = []
    for check in checks:
        if check.do_nothing is not False and check.task not in excluded:
            found.append(f"{check.task} passes when nothing is done: exclude it, with the reason")
        if check.do_nothing is False and check.task in excluded:
            found.append(f"{check.task} is excluded, but fails when nothing is done, as it should")
        if check.solution is not True:
            found.append(f"{check.task} has no known solution that passes")
    known = {check.task for check in checks}
    found += [f"{task} is excluded, but there is no such task" for task in sorted(set(excluded) - known)]
    return found


async def _check(pool: WorkerPool, task: str, solution: Mapping[str, Any] | None) -> TaskCheck:
    async with pool.world(task, 0, open_timeout_s=TIMEOUT_S) as world:
        do_nothing = await world.judge("", TIMEOUT_S)
    if solution is None:
        return TaskCheck(task, do_nothing["passed"], None)
    async with pool.world(task, 0, open_timeout_s=TIMEOUT_S) as world:
        for call in solution["calls"]:
            await world.act(call, TIMEOUT_S)
        solved = await world.judge(solution["answer"], TIMEOUT_S)
    return TaskCheck(task, do_nothing["passed"], solved["passed"])
