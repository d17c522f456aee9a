"""AppWorld's worlds on the real engine, with own tasks: what they cost, and how they run beside each other.

    python -m bench.appworld

CPU seconds to open and judge a world once the engine is warm, in all processes of the worker; how many times more
trials a minute 4 workers make than one, with a model that takes 200 ms an answer; private memory of each of 4 open
worlds, acted in, in megabytes. Makes the environment `appworld` if it is not there. Prints JSON.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

from xspec.benchmarks import environment_making, environments
from xspec.benchmarks.pool import WorkerPool
from xspec.spec.compose import compose

BUILDER = Path(__file__).parents[1] / "tests" / "appworld" / "build_root.py"
ANSWER_S = 0.2
TIMEOUT_S = 120
WORLDS = 10
TRIALS = 24


def build_root(root: Path) -> None:
    """Own tasks below `root`, made by the engine."""
    environment_making.create("appworld")
    python = environments.interpreter(environments.require("appworld"))
    variables = {"PATH": os.environ["PATH"], **environments.variables("appworld")}
    subprocess.run([python, BUILDER, root], env=variables, check=True, stdout=subprocess.DEVNULL)


def pool(members: int) -> WorkerPool:
    benchmark = compose(["benchmark=appworld", "agent=code_react"])["benchmark"]
    given = benchmark["version"], "test_normal", benchmark["settings"]
    return WorkerPool("appworld", *given, members=members, log=None)


def cpu_s() -> float:
    """CPU seconds of the zygote and of its members that have ended."""
    (zygote,) = psutil.Process().children()
    used = zygote.cpu_times()
    return float(used.user + used.system + used.children_user + used.children_system)


async def world_cpu_s(tasks: list[str]) -> float:
    """CPU seconds to open a world, judge it and end it."""
    async with pool(1) as worlds:

        async def used(worlds_opened: int) -> float:
            for number in range(worlds_opened):
                task = tasks[number % len(tasks)]
                async with worlds.world(task, 0, open_timeout_s=TIMEOUT_S) as world:
                    await world.judge("", TIMEOUT_S)
            await worlds.solutions()  # a member is forked for it, after those before it were ended
            return cpu_s()

        before = await used(1)
        return (await used(WORLDS) - before) / WORLDS


async def trials_a_minute(members: int, tasks: list[str]) -> float:
    """Trials of known solutions, each block of which a model took its time for."""
    async with pool(members) as worlds:
        solutions = await worlds.solutions()

        async def trial(task: str) -> None:
            async with worlds.world(task, 0, open_timeout_s=TIMEOUT_S) as world:
                for block in solutions[task]["calls"]:
                    await asyncio.sleep(ANSWER_S)
                    await world.act(block, TIMEOUT_S)
                assert (await world.judge("", TIMEOUT_S))["passed"]

        await trial(tasks[0])
        began = time.perf_counter()
        await asyncio.gather(*(trial(tasks[number % len(tasks)]) for number in range(TRIALS)))
        return TRIALS / (time.perf_counter() - began) * 60


async def private_mb(tasks: list[str]) -> list[float]:
    """Private memory of 4 worlds that are open at once and in which the solution was played."""
    async with pool(4) as worlds:
        solutions = await worlds.solutions()
        ready, measured = asyncio.Barrier(5), asyncio.Event()

        async def hold(task: str) -> None:
            async with worlds.world(task, 0, open_timeout_s=TIMEOUT_S) as world:
                for block in solutions[task]["calls"]:
                    await world.act(block, TIMEOUT_S)
                await ready.wait()
                await measured.wait()

        held = [asyncio.create_task(hold(task)) for task in tasks[:4]]
        await ready.wait()
        (zygote,) = psutil.Process().children()
        sizes = [member.memory_full_info().uss / 2**20 for member in zygote.children()]
        measured.set()
        await asyncio.gather(*held)
        return sizes


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="xspec-bench-") as folder:
        root = Path(folder) / "root"
        build_root(root)
        os.environ["APPWORLD_ROOT"] = str(root)
        tasks = sorted((root / "data/datasets/test_normal.txt").read_text().split())
        found: dict[str, Any] = {"world_cpu_s": asyncio.run(world_cpu_s(tasks))}
        found["private_mb"] = max(asyncio.run(private_mb(tasks)))
        if "--no-rates" not in sys.argv:
            one, four = (asyncio.run(trials_a_minute(members, tasks)) for members in (1, 4))
            found |= {"trials_a_minute_1": one, "trials_a_minute_4": four, "time_ratio": one / four}
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
