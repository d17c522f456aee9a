"""The benchmark `choices` in its worker: solutions pass, nothing else does."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from xspec.benchmarks.checks import check_tasks, unexplained
from xspec.benchmarks.pool import WorkerPool
from xspec.errors import SpecError
from xspec.spec.canonical import canonical_bytes


def play(
    scenario: Callable[[WorkerPool], Coroutine[Any, Any, None]], split: str = "all", **changes: Any
) -> None:
    async def run() -> None:
        given = {"version": "1", "settings": None, **changes}
        pool = WorkerPool("choices", given["version"], split, given["settings"], members=1, log=None)
        async with pool as entered:
            await scenario(entered)

    asyncio.run(run())


def test_solutions_pass_and_doing_nothing_fails() -> None:
    async def scenario(pool: WorkerPool) -> None:
        checks = await check_tasks(pool)
        assert len(checks) == 24
        assert unexplained(checks, ()) == []

    play(scenario)


def test_the_manifest_is_the_same_in_another_process() -> None:
    seen: list[bytes] = []

    async def scenario(pool: WorkerPool) -> None:
        manifest = await pool.describe()
        seen.append(canonical_bytes(manifest))
        assert Counter(row["stratum"] for row in manifest["tasks"]) == {"plain": 9, "worded": 8, "implied": 7}
        assert len({row["instruction"] for row in manifest["tasks"]}) == 24

    play(scenario)
    play(scenario)
    assert seen[0] == seen[1]


def test_a_split_is_a_stratum() -> None:
    async def scenario(pool: WorkerPool) -> None:
        manifest = await pool.describe()
        assert [row["id"] for row in manifest["tasks"]] == [f"implied.{i}" for i in range(7)]

    play(scenario, "implied")


LAMP = {"name": "set_lamp", "arguments": {"room": "kitchen", "state": "on"}}


@pytest.mark.parametrize(
    ("task", "calls", "passed"),
    [
        ("plain.0", [LAMP], True),
        ("plain.0", [LAMP, LAMP], False),
        ("plain.0", [{"name": "set_lamp", "arguments": {"room": "hall", "state": "on"}}], False),
        ("plain.0", [{"name": "set_lamp", "arguments": {"room": "kitchen"}}], False),
        ("plain.0", [{"name": "set_lamp", "arguments": {"room": "cellar", "state": "on"}}, LAMP], True),
        ("plain.3", [{"name": "set_timer", "arguments": {"minutes": 5}}], True),
        ("plain.3", [{"name": "set_timer", "arguments": {"minutes": True}}], False),
        ("plain.3", [{"name": "set_timer", "arguments": {"minutes": "5"}}], False),
        ("plain.5", [{"name": "add_to_list", "arguments": {"item": " Milk "}}], True),
        ("plain.5", [{"name": "add_to_list", "arguments": {"item": "milk and rice"}}], False),
        ("plain.5", [{"name": "no_such_tool", "arguments": {}}], False),
    ],
)
def test_the_one_right_call_passes(task: str, calls: list[dict[str, Any]], passed: bool) -> None:
    async def scenario(pool: WorkerPool) -> None:
        async with pool.world(task, 0, open_timeout_s=20) as world:
            for call in calls:
                await world.act(call, 20)
            assert (await world.judge("", 20))["passed"] is passed

    play(scenario)


@pytest.mark.parametrize(
    ("split", "changes", "said"),
    [
        ("hard", {}, "it has all, plain, worded, implied"),
        ("all", {"version": "2"}, "no version '2'"),
        ("all", {"settings": {"size": 3}}, "no setting 'size'"),
    ],
)
def test_what_it_does_not_have(split: str, changes: dict[str, Any], said: str) -> None:
    async def scenario(pool: WorkerPool) -> None:
        raise AssertionError("it started")

    with pytest.raises(SpecError, match=said):
        play(scenario, split, **changes)
