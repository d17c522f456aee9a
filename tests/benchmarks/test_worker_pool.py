"""The pool of workers: worlds work; members that die, hang or are abandoned are replaced and leave nothing."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import psutil
import pytest

from xspec.benchmarks import BENCHMARKS, Launch, frames, package_fingerprint, zygote_process
from xspec.benchmarks.pool import WorkerPool, World
from xspec.errors import SpecError, WorkerDied, WorkerError, WorkerHung, ZygoteDied

TINY = Launch(Path(__file__).with_name("tiny_benchmark.py"))

Play = Callable[[WorkerPool], Coroutine[Any, Any, None]]


def tiny(members: int = 2, log: Path | None = None, version: str = "1", **settings: int) -> WorkerPool:
    return WorkerPool("tiny", version, "all", settings, members=members, log=log, launch=TINY)


def play(scenario: Play, pool: WorkerPool | None = None) -> None:
    """Runs a scenario on a pool."""

    async def run() -> None:
        async with pool or tiny() as entered:
            await scenario(entered)

    asyncio.run(run())


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


async def add_three(world: World) -> dict[str, Any]:
    await world.act(call("add", amount=1), 5)
    await world.act(call("add", amount=2), 5)
    return await world.judge("", 5)


async def pids(world: World) -> tuple[int, int]:
    """Of the member and of its zygote."""
    member, zygote = (await world.act(call("pid"), 5))["content"].split()
    return int(member), int(zygote)


def gone(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def await_gone(*pids: int) -> None:
    end = time.monotonic() + 10
    while not all(map(gone, pids)):
        assert time.monotonic() < end, f"still running: {[pid for pid in pids if not gone(pid)]}"
        time.sleep(0.02)


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110  (what is waited for happens in another process)
        await asyncio.sleep(0.01)


def test_worlds_are_acted_in_and_judged_and_members_are_reused() -> None:
    async def scenario(pool: WorkerPool) -> None:
        assert (await pool.describe())["benchmark"] == "tiny"
        solutions = await pool.solutions()
        assert sorted(solutions) == ["tiny.0", "tiny.1"]
        seen = set()
        for _ in range(3):
            async with pool.world("tiny.0", 0, open_timeout_s=5) as world:
                assert await world.judge("", 5) == {"passed": False, "detail": {"total": 0}}
                assert (await add_three(world))["passed"] is True
                seen.add((await pids(world))[0])
        assert len(seen) == 1

    play(scenario)


def test_what_only_worlds_need_is_loaded_once_when_one_is_wanted() -> None:
    async def scenario(pool: WorkerPool) -> None:
        assert (await pool.describe())["warmed"] == 0
        assert len(await pool.solutions()) == 2
        said = await asyncio.gather(*(in_world(pool, n) for n in range(4)))
        (only,) = set(said)
        warmed, zygote = only.split(" in ")
        assert warmed == f"[{zygote}]", "not once, in the zygote"

    async def in_world(pool: WorkerPool, n: int) -> str:
        async with pool.world(f"tiny.{n}", 0, open_timeout_s=5) as world:
            return str((await world.act(call("any"), 5))["content"])

    play(scenario, tiny(version="warms"))


@pytest.mark.parametrize(
    ("version", "error", "told"),
    [
        ("warms badly", SpecError, "^the data lack a task$"),
        (
            "warms never",
            WorkerError,
            "^the benchmark could not be loaded: RuntimeError: the engine is broken$",
        ),
    ],
)
def test_without_what_worlds_need_the_benchmark_still_describes_itself(
    version: str, error: type[Exception], told: str
) -> None:
    async def scenario(pool: WorkerPool) -> None:
        with pytest.raises(error, match=told):
            await pool.warm()
        with pytest.raises(error, match=told):
            async with pool.world("tiny.0", 0, open_timeout_s=5):
                pass
        assert (await pool.describe())["benchmark"] == "tiny"

    play(scenario, tiny(version=version))


def test_one_that_hangs_while_it_loads_what_worlds_need_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    others = set(psutil.Process().children())  # of other tests in this process

    async def scenario(pool: WorkerPool) -> None:
        (hanging,) = set(psutil.Process().children()) - others
        with monkeypatch.context() as patch:
            patch.setattr(zygote_process, "START_TIMEOUT_S", 0.1)
            with pytest.raises(WorkerHung, match=r"did not load within 0\.1 s"):
                await pool.warm()
        assert (await pool.describe())["benchmark"] == "tiny"
        assert gone(hanging.pid)

    play(scenario, tiny(version="warms slowly"))


def test_no_more_worlds_are_open_than_there_are_members() -> None:
    async def scenario(pool: WorkerPool) -> None:
        now, most, members, full = 0, 0, set(), asyncio.Event()

        async def one(n: int) -> None:
            nonlocal now, most
            async with pool.world(f"tiny.{n}", 0, open_timeout_s=5) as world:
                now += 1
                most = max(most, now)
                if now == 3:
                    full.set()
                await full.wait()  # else a quick member might serve two before the third is there
                members.add((await pids(world))[0])
                assert (await add_three(world))["passed"] is True
                now -= 1

        await asyncio.gather(*(one(n) for n in range(12)))
        assert most == 3
        assert len(members) == 3

    play(scenario, tiny(members=3))


@pytest.mark.parametrize(
    ("action", "content"),
    [
        (call("fail"), "KeyError: 'no such thing'"),
        (call("exit"), "SystemExit: 7"),
        (call("add"), "KeyError: 'amount'"),
        ({"name": "add"}, "KeyError: 'arguments'"),
        ({"code": "print(1)"}, "KeyError: 'name'"),
    ],
)
def test_a_tool_that_fails_is_an_observation(action: dict[str, Any], content: str) -> None:
    async def scenario(pool: WorkerPool) -> None:
        async with pool.world("tiny.0", 0, open_timeout_s=5) as world:
            assert await world.act(action, 5) == {"content": content, "error": True}
            assert (await add_three(world))["passed"] is True

    play(scenario)


def test_arguments_that_no_frame_holds_are_the_agents_error() -> None:
    nested: dict[str, Any] = {}
    for _ in range(100_000):
        nested = {"a": nested}

    async def scenario(pool: WorkerPool) -> None:
        async with pool.world("tiny.0", 0, open_timeout_s=5) as world:
            refused = await world.act(call("raw", text=nested), 5)
            assert refused["error"] is True
            assert "cannot be carried out" in refused["content"]
            odd = "lone \ud83d, nul \x00, 日本"
            assert (await world.act(call("raw", text=odd), 5))["content"] == odd

    play(scenario)
    while nested:
        nested = nested["a"]


def test_long_observations_are_trimmed_in_the_worker() -> None:
    async def scenario(pool: WorkerPool) -> None:
        async with pool.world("tiny.0", 0, open_timeout_s=5) as world:
            whole = await world.act(call("long", length=100), 5)
            assert whole["content"] == "é" * 100
            cut = await world.act(call("long", length=101), 5)
            note = "\n[observation trimmed: the first 100 of 101 characters are shown]"
            assert cut["content"] == "é" * 100 + note

    play(scenario, tiny(observation_chars=100))


def test_what_a_benchmark_prints_goes_to_the_log_and_not_into_the_protocol(tmp_path: Path) -> None:
    log = tmp_path / "worker.log"

    async def scenario(pool: WorkerPool) -> None:
        async with pool.world("tiny.0", 0, open_timeout_s=5) as world:
            assert (await world.act(call("print"), 5))["error"] is False
            assert (await add_three(world))["passed"] is True

    play(scenario, tiny(log=log))
    assert log.read_text().startswith("printed while loading\n")
    assert "x" * 100_000 in log.read_text()


def test_a_hanging_member_is_killed_and_replaced_and_others_go_on() -> None:
    async def scenario(pool: WorkerPool) -> None:
        async with pool.world("tiny.1", 0, open_timeout_s=5) as other:
            await other.act(call("add", amount=1), 5)
            for name in ("hang", "hang_in_c"):
                async with pool.world("tiny.0", 0, open_timeout_s=5) as world:
                    member, _ = await pids(world)
                    with pytest.raises(WorkerHung, match=r"'act' of tiny\.0 within 0\.2 s"):
                        await world.act(call(name), 0.2)
                    with pytest.raises(WorkerDied):
                        await world.judge("", 5)
                await asyncio.to_thread(await_gone, member)
            async with pool.world("tiny.0", 0, open_timeout_s=5) as world:
                assert (await add_three(world))["passed"] is True
            await other.act(call("add", amount=2), 5)
            assert (await other.judge("", 5))["passed"] is True

    play(scenario)


def test_a_member_that_dies_is_replaced() -> None:
    async def scenario(pool: WorkerPool) -> None:
        async with pool.world("tiny.0", 0, open_timeout_s=5) as world:
            with pytest.raises(WorkerDied, match=r"during 'act' of tiny\.0 \(SIGSEGV\)") as died:
                await world.act(call("die", signal=int(signal.SIGSEGV)), 5)
            assert not isinstance(died.value, ZygoteDied)
        async with pool.world("tiny.0", 0, open_timeout_s=5) as world:
            assert (await add_three(world))["passed"] is True
            member, _ = await pids(world)
        os.kill(member, signal.SIGKILL)  # while it idles: the next world must not notice
        async with pool.world("tiny.0", 0, open_timeout_s=5) as world:
            assert (await add_three(world))["passed"] is True
            assert (await pids(world))[0] != member

    play(scenario, tiny(members=1))


def test_a_zygote_that_dies_is_started_again() -> None:
    async def scenario(pool: WorkerPool) -> None:
        async with pool.world("tiny.0", 0, open_timeout_s=5) as world:
            member, zygote = await pids(world)
            os.kill(zygote, signal.SIGKILL)
            with pytest.raises(ZygoteDied, match=r"during 'act' of tiny\.0, with its zygote"):
                await world.act(call("hang_in_c"), 5)
        async with pool.world("tiny.0", 0, open_timeout_s=5) as world:
            assert (await add_three(world))["passed"] is True
            assert (await pids(world))[1] != zygote
        await asyncio.to_thread(await_gone, member, zygote)

    play(scenario)


def test_a_cancelled_act_costs_its_member_and_nothing_else() -> None:
    async def scenario(pool: WorkerPool) -> None:
        members = []

        async def stuck() -> None:
            async with pool.world("tiny.0", 0, open_timeout_s=5) as world:
                members.append((await pids(world))[0])
                await world.act(call("hang"), 60)

        task = asyncio.create_task(stuck())
        await until(lambda: len(members) == 1)
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.to_thread(await_gone, *members)
        async with pool.world("tiny.0", 0, open_timeout_s=5) as world:
            assert (await add_three(world))["passed"] is True

    play(scenario, tiny(members=1))


def test_cancelling_between_acts_gives_the_member_back() -> None:
    async def scenario(pool: WorkerPool) -> None:
        members = []

        async def waiting() -> None:
            async with pool.world("tiny.0", 0, open_timeout_s=5) as world:
                members.append((await pids(world))[0])
                await asyncio.sleep(60)

        task = asyncio.create_task(waiting())
        await until(lambda: len(members) == 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with pool.world("tiny.0", 0, open_timeout_s=5) as world:
            assert (await pids(world))[0] == members[0]

    play(scenario, tiny(members=1))


def test_closing_the_pool_ends_busy_members_and_what_they_started() -> None:
    found: list[int] = []

    async def scenario(pool: WorkerPool) -> None:
        async def busy() -> None:
            async with pool.world("tiny.0", 0, open_timeout_s=5) as world:
                found.extend(await pids(world))
                found.append(int((await world.act(call("spawn"), 5))["content"]))
                with pytest.raises(WorkerDied):
                    await world.act(call("hang_in_c"), 60)

        task = asyncio.create_task(busy())
        await until(lambda: len(found) == 3)
        await pool.aclose()
        await task
        with pytest.raises(WorkerDied, match="closed"):
            async with pool.world("tiny.0", 0, open_timeout_s=5):
                pass

    play(scenario)
    await_gone(*found)


PARENT = """
import asyncio, sys
from pathlib import Path
from xspec.benchmarks import Launch
from xspec.benchmarks.pool import WorkerPool

async def busy(pool, name):
    async with pool.world("tiny.0", 0, open_timeout_s=5) as world:
        print((await world.act({"name": "pid", "arguments": {}}, 5))["content"], flush=True)
        print((await world.act({"name": "spawn", "arguments": {}}, 5))["content"], flush=True)
        await world.act({"name": name, "arguments": {}}, 60)

async def main():
    launch = Launch(Path(sys.argv[1]))
    async with WorkerPool("tiny", "1", "all", {}, members=3, log=None, launch=launch) as pool:
        await asyncio.gather(*(busy(pool, name) for name in ("hang", "hang_in_c", "hang")))

asyncio.run(main())
"""


def test_a_killed_parent_leaves_no_process() -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(TINY.module)], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    with parent.stdout:
        lines = [parent.stdout.readline() for _ in range(6)]
        found = {int(pid) for line in lines for pid in line.split()}
        assert len(found) == 7  # the zygote, three members, three processes of theirs
        parent.kill()
        parent.wait()
    await_gone(*found)


def test_a_parent_killed_while_the_benchmark_loads_leaves_no_process() -> None:
    script = PARENT.replace('"tiny", "1"', '"tiny", "stuck"')
    parent = subprocess.Popen([sys.executable, "-c", script, str(TINY.module)])
    end = time.monotonic() + 20
    while not (workers := psutil.Process(parent.pid).children()):
        assert time.monotonic() < end
        time.sleep(0.02)
    time.sleep(0.5)
    parent.kill()
    parent.wait()
    await_gone(*(worker.pid for worker in workers))


def test_no_variable_outside_the_allow_list_reaches_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "canary-1")
    monkeypatch.setenv("PYTHONCANARY", "canary-2")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")

    async def scenario(pool: WorkerPool) -> None:
        async with pool.world("tiny.0", 0, open_timeout_s=5) as world:
            environ = (await world.act(call("environ"), 5))["content"]
            assert "canary" not in environ
            assert "LC_ALL=C.UTF-8" in environ
            assert "PYTHONHASHSEED=0" in environ
            member, zygote = await pids(world)
            for pid in (member, zygote):
                assert not any("canary" in value for value in psutil.Process(pid).environ().values())

    play(scenario)


@pytest.mark.parametrize(
    ("version", "kind", "message"),
    [
        ("broken", WorkerError, "could not be loaded: RuntimeError: the data file is missing"),
        ("exits", WorkerError, "Fatal: no licence for this machine"),
        ("2", SpecError, "tiny has no version '2'; it has 1"),
    ],
)
def test_a_start_that_fails_says_why(
    version: str, kind: type[Exception], message: str, tmp_path: Path
) -> None:
    async def scenario(pool: WorkerPool) -> None:
        raise AssertionError("it must not start")

    for log in (None, tmp_path / "worker.log"):
        with pytest.raises(kind, match=message):
            play(scenario, tiny(version=version, log=log))


def test_an_interpreter_that_is_not_there_is_named() -> None:
    pool = WorkerPool("x", "1", "all", {}, members=1, log=None, launch=Launch(TINY.module, (), "/no/python"))
    with pytest.raises(WorkerError, match="cannot start /no/python"):
        asyncio.run(pool.__aenter__())


def test_unknown_names_and_settings_are_the_users_input() -> None:
    with pytest.raises(SpecError, match="there is no benchmark 'nope'; known: agentdojo"):
        WorkerPool("nope", "1", "all", {}, members=1, log=None)
    with pytest.raises(SpecError, match="observation_chars is 0"):
        asyncio.run(tiny(observation_chars=0).__aenter__())

    async def scenario(pool: WorkerPool) -> None:
        with pytest.raises(SpecError, match="no task 'nope'"):
            async with pool.world("nope", 0, open_timeout_s=5):
                pass

    play(scenario)


def test_a_benchmark_that_raises_is_a_worker_error_and_the_member_survives_its_verdict() -> None:
    async def scenario(pool: WorkerPool) -> None:
        with pytest.raises(WorkerError, match="FileNotFoundError: no such world"):
            async with pool.world("tiny.unopenable", 0, open_timeout_s=5):
                pass
        async with pool.world("tiny.0", 0, open_timeout_s=5) as world:
            with pytest.raises(WorkerError, match="ZeroDivisionError: the verdict broke"):
                await world.judge("raise", 5)
            assert (await add_three(world))["passed"] is True

    play(scenario, tiny(members=1))


def test_a_member_that_sends_noise_counts_as_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    async def noise(reader: asyncio.StreamReader) -> frames.Message | None:
        raise frames.FrameError("a header announces 4294967295 bytes")

    async def scenario(pool: WorkerPool) -> None:
        async with pool.world("tiny.0", 0, open_timeout_s=5) as world:
            with monkeypatch.context() as patch:
                patch.setattr("xspec.benchmarks.zygote_process.frames.receive", noise)
                with pytest.raises(WorkerDied):
                    await world.judge("", 5)
        async with pool.world("tiny.0", 0, open_timeout_s=5) as world:
            assert (await add_three(world))["passed"] is True

    play(scenario)


def test_the_fingerprint_changes_with_the_files_of_the_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tmp_path / "mine.py"
    helper = tmp_path / "mine_helper.py"
    monkeypatch.setitem(BENCHMARKS, "mine", Launch(module, packages=("pydantic",)))
    fingerprints = set()
    for text in ("a = 1", "a = 2"):
        for file in (module, helper):
            file.write_text(text)
            fingerprints.add(package_fingerprint("mine"))
    assert len(fingerprints) == 4
    assert package_fingerprint("mine") in fingerprints


def test_closing_during_a_restart_leaves_nothing() -> None:
    async def scenario(pool: WorkerPool) -> None:
        async with pool.world("tiny.0", 0, open_timeout_s=5) as world:
            _, zygote = await pids(world)
        os.kill(zygote, signal.SIGKILL)
        await asyncio.to_thread(await_gone, zygote)

        async def again() -> None:
            async with pool.world("tiny.0", 0, open_timeout_s=5):
                pass

        task = asyncio.create_task(again())
        await asyncio.sleep(0.05)
        await pool.aclose()
        with pytest.raises(WorkerDied):
            await task

    play(scenario)
