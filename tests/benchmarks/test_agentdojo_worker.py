"""AgentDojo in its worker: what passes, what is the same every time, and that quick verdicts are the same verdicts."""

import asyncio
import datetime
import subprocess
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf
from pydantic import BaseModel

from xspec.benchmarks.agentdojo_lean import same_content
from xspec.benchmarks.checks import TaskCheck, check_tasks, unexplained
from xspec.benchmarks.pool import WorkerPool, World
from xspec.errors import SpecError
from xspec.spec.canonical import canonical_bytes

CONFIGURATION = Path(__file__).parents[2] / "conf" / "benchmark" / "agentdojo.yaml"


def agentdojo(members: int = 2, split: str = "all", version: str = "v1.2.2") -> WorkerPool:
    return WorkerPool("agentdojo", version, split, None, members=members, log=None)


def play(scenario: Callable[[WorkerPool], Coroutine[Any, Any, None]], pool: WorkerPool | None = None) -> None:
    async def run() -> None:
        async with pool or agentdojo() as entered:
            await scenario(entered)

    asyncio.run(run())


async def call(world: World, name: str, **arguments: Any) -> dict[str, Any]:
    return await world.act({"name": name, "arguments": arguments}, 10)


def test_all_solutions_pass_and_exactly_the_excluded_tasks_pass_when_nothing_is_done() -> None:
    configured = OmegaConf.to_container(OmegaConf.load(CONFIGURATION))
    assert isinstance(configured, dict)
    excluded = {entry["task"] for entry in configured["exclude"]}
    assert all(entry["reason"] for entry in configured["exclude"])
    assert excluded == {f"banking.user_task_{n}" for n in (5, 6, 8, 9, 10)}

    async def scenario(pool: WorkerPool) -> None:
        checks = await check_tasks(pool)
        assert len(checks) == 97
        assert unexplained(checks, excluded) == []
        assert {check.task for check in checks if check.do_nothing} == excluded

    play(scenario)


def test_giving_up_anywhere_up_to_commit_fails() -> None:
    async def scenario(pool: WorkerPool) -> None:
        solutions = await pool.solutions()
        assert len(solutions) == 97

        async def gives_up(task: str, index: int) -> bool:
            async with pool.world(task, 0, open_timeout_s=10) as world:
                for action in solutions[task]["calls"][:index]:
                    await world.act(action, 10)
                return (await world.judge("", 10))["passed"] is False

        for task, solution in solutions.items():
            commit, last = solution["commit"], len(solution["calls"]) - 1
            assert -1 <= commit <= max(last, 0)
            assert all([await gives_up(task, index) for index in range(commit + 1)])
            if commit < last:
                assert not await gives_up(task, commit + 1)

    play(scenario, agentdojo(members=1))


def test_the_manifest_has_the_same_bytes_in_every_process(monkeypatch: pytest.MonkeyPatch) -> None:
    manifests: list[dict[str, Any]] = []

    async def scenario(pool: WorkerPool) -> None:
        manifests.append(await pool.describe())

    play(scenario)
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    monkeypatch.setenv("LC_ALL", "C")
    monkeypatch.setenv("PYTHONHASHSEED", "77")
    play(scenario)
    one, other = map(canonical_bytes, manifests)
    assert one == other

    manifest = manifests[0]
    assert manifest["package"] == {"agentdojo": "0.1.35"}
    tasks = manifest["tasks"]
    ids = [task["id"] for task in tasks]
    assert ids == sorted(ids, key=lambda id_: (id_.split(".")[0], int(id_.rpartition("_")[2])))
    assert {name: len(tools) for name, tools in manifest["toolsets"].items()} == {
        "banking": 11,
        "slack": 11,
        "travel": 28,
        "workspace": 24,
    }
    for task in tasks:
        assert task["toolset"] == task["stratum"] == task["id"].split(".")[0]
        assert task["cluster"] == task["id"]
        assert task["data"].startswith("sha256:")
        assert task["difficulty"] in ("easy", "medium", "hard", None)
    assert {task["difficulty"] for task in tasks if task["stratum"] == "banking"} == {None}


def test_a_split_may_be_one_suite() -> None:
    async def scenario(pool: WorkerPool) -> None:
        assert len((await pool.describe())["tasks"]) == 21
        with pytest.raises(SpecError, match=r"no task 'banking\.user_task_0'"):
            async with pool.world("banking.user_task_0", 0, open_timeout_s=10):
                pass

    play(scenario, agentdojo(split="slack"))


@pytest.mark.parametrize(("split", "version"), [("nope", "v1.2.2"), ("all", "v9")])
def test_an_unknown_version_or_split_is_the_users_input(split: str, version: str) -> None:
    with pytest.raises(SpecError, match=r"it has .*(workspace|v1\.2\.2)"):
        asyncio.run(agentdojo(split=split, version=version).__aenter__())


def test_the_same_actions_give_the_same_observations() -> None:
    seen = []

    async def scenario(pool: WorkerPool) -> None:
        for run in range(2):
            async with pool.world("workspace.user_task_0", run, open_timeout_s=10) as world:
                mail = {"recipients": ["a@b.com"], "subject": "s", "body": "b"}
                seen.append(
                    [
                        await call(world, "send_email", **mail),
                        await call(world, "create_file", filename="f", content="c"),
                        await call(world, "append_to_file", file_id="1", content="c"),
                        await call(world, "get_unread_emails"),
                    ]
                )

    play(scenario)
    assert seen[0] == seen[1]
    assert not any(observation["error"] for observation in seen[0])
    assert "2025-01-01 00:00:01" in seen[0][0]["content"]


def test_calls_that_go_wrong_are_told_to_the_agent_in_the_harness_words() -> None:
    async def scenario(pool: WorkerPool) -> None:
        async with pool.world("workspace.user_task_0", 0, open_timeout_s=10) as world:
            assert await call(world, "no_such_tool") == {
                "content": "Invalid tool no_such_tool provided.",
                "error": True,
            }
            missing = await call(world, "send_email")
            assert missing["error"] is True
            assert missing["content"].startswith("ValidationError: ")
            unknown = await call(world, "delete_email", email_id="9999")
            assert unknown == {"content": "ValueError: Email with ID '9999' not found.", "error": True}
            malformed: list[dict[str, Any]] = [{"name": "send_email", "arguments": "text"}, {"arguments": {}}]
            for action in [*malformed, {"code": "1"}]:
                assert (await world.act(action, 10))["error"] is True
            listed = await call(world, "send_email", recipients="['a@b.com']", subject="s", body="b")
            assert listed["error"] is False
            assert "- a@b.com" in listed["content"]

    play(scenario)


def test_a_verdict_that_stumbles_over_what_the_agent_removed_is_a_fail() -> None:
    async def scenario(pool: WorkerPool) -> None:
        async with pool.world("slack.user_task_1", 0, open_timeout_s=10) as world:
            assert (await call(world, "remove_user_from_slack", user="Alice"))["error"] is False
            verdict = await world.judge("", 10)
            assert verdict == {"passed": False, "detail": {"raised": "KeyError: 'Alice'"}}

    play(scenario)


COMPARE = """
import pickle
from xspec.benchmarks.agentdojo import make

benchmark = make("v1.2.2", "all", {})
from agentdojo.default_suites.v1.travel.task_suite import TravelDeepDiff
from agentdojo.default_suites.v1.workspace.task_suite import WorkspaceDeepDiff

compared = found = 0
for suite, quick in (("travel", TravelDeepDiff), ("workspace", WorkspaceDeepDiff)):
    tasks = [entry["id"] for entry in benchmark.describe()["tasks"] if entry["stratum"] == suite]
    for task in tasks[::4]:
        benchmark.open(task, 0)
        for call in benchmark._ground_truth(task)[0]:
            benchmark.act(call)
        world = benchmark._world
        plain = quick.func(world.before, world.now, exclude_paths=quick.keywords["exclude_paths"])
        assert quick(world.before, world.now) == plain, task
        compared, found = compared + 1, found + bool(plain)
        benchmark.close()
print(compared, found)
"""


def test_the_quick_diff_finds_what_the_plain_one_finds() -> None:
    run = subprocess.run([sys.executable, "-c", COMPARE], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    compared, found = map(int, run.stdout.split())
    assert compared == 15
    assert found >= 5


class Entry(BaseModel):
    value: Any


def test_same_content_is_stricter_than_equality() -> None:
    moment = datetime.datetime(2024, 5, 15)
    values = [1, 1.5, "a", None, True, moment, [1, {"a": [2]}], {"a": Entry(value=1)}]
    for value in values:
        assert same_content(Entry(value=value), Entry(value=value).model_copy(deep=True))
    different = [(1, 1.0), (1, True), ("a", "b"), ([1], [1, 2]), ({"a": 1}, {"b": 1}), (float("nan"),) * 2]
    for one, other in different:
        assert not same_content(Entry(value=[one]), Entry(value=[other])) or one is other
    assert not same_content(moment.replace(tzinfo=datetime.UTC), moment.replace(tzinfo=datetime.UTC))
    assert not same_content(Entry(value=1), Entry.model_construct(value=1, _fields_set=set()))


def test_what_is_not_as_it_should_be_is_told_in_sentences() -> None:
    checks = [
        TaskCheck("a", do_nothing=False, solution=True),
        TaskCheck("b", do_nothing=True, solution=True),
        TaskCheck("c", do_nothing=False, solution=None),
        TaskCheck("d", do_nothing=True, solution=True),
    ]
    assert unexplained(checks, ["a", "d", "z"]) == [
        "a is excluded, but fails when nothing is done, as it should",
        "b passes when nothing is done: exclude it, with the reason",
        "c has no known solution that passes",
        "z is excluded, but there is no such task",
    ]
