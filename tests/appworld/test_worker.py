"""The AppWorld worker on the real engine: verdicts, hostile code, output folders, and nothing left behind."""

import asyncio
import json
import shutil
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from xspec.benchmarks.appworld_output import KEPT_CHARS
from xspec.benchmarks.pool import WorkerPool, World
from xspec.errors import SpecError, WorkerDied, WorkerError, WorkerHung
from xspec.spec.compose import compose

TASK = "chores_1"

Play = Callable[[Callable[[WorkerPool], Coroutine[Any, Any, None]]], None]


@pytest.fixture(scope="module")
def play(appworld_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Play]:
    """Runs a scenario on the one pool of this file; after the last, no process is left behind."""
    log = tmp_path_factory.mktemp("worker") / "log"
    others = psutil.Process().children(recursive=True)  # of other files' fixtures, in the same process
    with pytest.MonkeyPatch.context() as patch, asyncio.Runner() as runner:
        patch.setenv("APPWORLD_ROOT", str(appworld_root))
        benchmark = compose(["benchmark=appworld", "agent=code_react"])["benchmark"]
        settings = benchmark["settings"] | {"timeout_seconds": 3}
        pool = WorkerPool("appworld", benchmark["version"], "test_normal", settings, members=2, log=log)
        runner.run(pool.__aenter__())
        try:
            yield lambda scenario: runner.run(scenario(pool))
        finally:
            runner.run(pool.aclose())
    assert set(psutil.Process().children(recursive=True)) <= set(others)


async def run_code(world: World, code: str, timeout_s: float = 60) -> dict[str, Any]:
    return await world.act({"code": code}, timeout_s)


async def run_all(world: World, blocks: list[dict[str, Any]]) -> dict[str, Any]:
    observation: dict[str, Any] = {}
    for block in blocks:
        observation = await world.act(block, 60)
        assert observation["error"] is False, observation
    return observation


def test_solutions_pass_nothing_and_giving_up_fail(play: Play, tmp_path: Path) -> None:
    async def scenario(pool: WorkerPool) -> None:
        manifest, solutions = await pool.describe(), await pool.solutions()
        rows = {row["id"]: row for row in manifest["tasks"]}
        assert manifest["package"] == {"appworld": "0.1.3.post1"}
        assert {row["difficulty"] for row in rows.values()} == {"easy", "medium", "hard"}
        assert len({row["cluster"] for row in rows.values()}) == 4
        assert {row["cluster_tasks"] for row in rows.values()} == {3}
        tasks = [f"{cluster}_1" for cluster in sorted({row["cluster"] for row in rows.values()})]
        await asyncio.gather(*(solved(pool, task, solutions[task]) for task in tasks))
        await asyncio.gather(*(unsolved(pool, task, solutions[task]) for task in tasks[:2]))

    async def solved(pool: WorkerPool, task: str, solution: dict[str, Any]) -> None:
        folder = tmp_path / task
        folder.mkdir()
        async with pool.world(task, 0, open_timeout_s=60, folder=folder) as world:
            await run_all(world, [solution["detour"]])
            last = await run_all(world, solution["calls"])
            verdict = await world.judge("", 60)
        assert last["done"] is True
        assert [call["name"] for call in last["calls"]] == ["supervisor.complete_task"]
        detail = verdict["detail"]
        assert (verdict["passed"], detail["success"], detail["completed"]) == (True, True, True)
        assert detail["interactions"] == len(solution["calls"]) + 1
        assert detail["failures"] == []
        assert len(detail["passes"]) == detail["num_tests"]
        kept = folder / "tasks" / task
        assert "complete_task" in (kept / "logs/environment_io.md").read_text()
        assert (kept / "logs/api_calls.jsonl").stat().st_size > 0
        assert (kept / "dbs/supervisor.jsonl").is_file()

    async def unsolved(pool: WorkerPool, task: str, solution: dict[str, Any]) -> None:
        async with pool.world(task, 0, open_timeout_s=60) as world:
            verdict = await world.judge("", 60)
            assert (verdict["passed"], verdict["detail"]["completed"]) == (False, False)
            assert verdict["detail"]["failures"][0].keys() == {"requirement", "label"}
        async with pool.world(task, 0, open_timeout_s=60) as world:
            assert (await run_all(world, [solution["give_up"]]))["done"] is True
            verdict = await world.judge("", 60)
            assert (verdict["passed"], verdict["detail"]["completed"]) == (False, True)

    play(scenario)


def test_what_code_does_wrong_is_text_for_the_agent(play: Play, appworld_root: Path) -> None:
    truth = appworld_root / "data/tasks" / TASK / "ground_truth/answer.json"
    cases = {
        f"open({str(truth)!r}).read()": "not allowed: builtins.open",
        f"getattr(builtins, 'open')({str(truth)!r}).read()": "PermissionError",
        "getattr(builtins, 'open')('/etc/passwd').read()": "PermissionError",
        "import pathlib; pathlib.Path('/proc/self/environ').read_text()": "PermissionError",
        "requester.client.portal.call(getattr(builtins, 'open'), '/etc/passwd')": "PermissionError",
        "import socket": "not allowed: socket",
        "import appworld.requester as r; r.requests.get('http://127.0.0.1:9')": "Operation not permitted",
        "import uuid; uuid.os.execv('/bin/true', ['true'])": "Operation not permitted",
        "x = 'x' * 10**10": "MemoryError",
        "raise KeyboardInterrupt": "KeyboardInterrupt",
        "raise SystemExit(3)": "Exception",
        "raise GeneratorExit": "GeneratorExit",
        "apis.todoist.no_such_api()": "No API named",
        "apis.supervisor.show_profile(no_such_parameter=1)": "Unexpected parameter",
        "def": "Syntax error",
        "while True: pass": "timed out after 3 seconds",
    }

    async def scenario(pool: WorkerPool) -> None:
        async with pool.world(TASK, 0, open_timeout_s=60) as world:
            for code, said in cases.items():
                observation = await run_code(world, code)
                assert observation["error"] is True, (code, observation)
                assert said in observation["content"], (code, observation)
                assert observation["done"] is False
            again = await run_code(world, "print(apis.supervisor.show_profile()['email'])")
            assert again["error"] is False
            assert again["calls"] == [{"name": "supervisor.show_profile", "arguments": {}}]
            verdict = await world.judge("", 60)
            assert verdict["detail"]["interactions"] == len(cases) + 1

    play(scenario)


def test_much_output_is_cut_without_being_held(play: Play, tmp_path: Path) -> None:
    async def scenario(pool: WorkerPool) -> None:
        async with pool.world(TASK, 0, open_timeout_s=60, folder=tmp_path) as world:
            pid = int((await run_code(world, "import os; print(os.getpid())"))["content"])
            before = psutil.Process(pid).memory_info().rss
            observation = await run_code(world, "for _ in range(100): print('x' * 2**20)")
            assert psutil.Process(pid).memory_info().rss - before < 30 * 2**20
        assert observation["content"].startswith("x" * 1000)
        assert "[observation trimmed: the first 50000 of" in observation["content"]
        assert len(observation["content"]) < 51_000
        log = (tmp_path / "tasks" / TASK / "logs/environment_io.md").read_text()
        assert f"[output cut: {KEPT_CHARS} of {100 * (2**20 + 1)} characters were kept]" in log

    play(scenario)


def test_code_that_hangs_or_ends_its_process_ends_its_world_alone(play: Play) -> None:
    async def scenario(pool: WorkerPool) -> None:
        async with pool.world("rota_1", 0, open_timeout_s=60) as other:
            async with pool.world(TASK, 0, open_timeout_s=60) as world:
                stubborn = (
                    "def f():\n  while True: pass\nwhile True:\n  try: f()\n  except BaseException: pass"
                )
                with pytest.raises(WorkerHung):
                    await run_code(world, stubborn, timeout_s=4)
            async with pool.world(TASK, 0, open_timeout_s=60) as world:
                with pytest.raises(WorkerDied, match="SIGABRT"):
                    await run_code(world, "import uuid; uuid.os.abort()")
            async with pool.world(TASK, 0, open_timeout_s=60) as world:
                pid = int((await run_code(world, "import os; print(os.getpid())"))["content"])
                psutil.Process(pid).kill()
                with pytest.raises(WorkerDied, match="SIGKILL"):
                    await run_code(world, "print(1)")
            assert (await run_code(other, "print(1)"))["content"].strip() == "1"

    play(scenario)


def test_a_folder_that_cannot_be_written_breaks_the_world_and_not_the_agent(
    play: Play, tmp_path: Path
) -> None:
    async def scenario(pool: WorkerPool) -> None:
        folder = tmp_path / "world"
        folder.mkdir()
        async with pool.world(TASK, 0, open_timeout_s=60, folder=folder) as world:
            assert (await run_code(world, "x = 1"))["error"] is False
            shutil.rmtree(folder)
            with pytest.raises(WorkerError, match="state could not be kept"):
                await run_code(world, "x = 2")
        async with pool.world(TASK, 0, open_timeout_s=60) as world:
            assert json.loads((await run_code(world, "print(1)"))["content"]) == 1
        with pytest.raises(SpecError, match="has no task 'nobody_1'"):
            async with pool.world("nobody_1", 0, open_timeout_s=60):
                pass

    play(scenario)
