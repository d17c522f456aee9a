"""One pace for several processes: never more than the limit, fair, and freed by the kernel when one is killed."""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from xspec.route import shared_pace
from xspec.route.pacing import Pacer, Pacers
from xspec.route.shared_pace import SharedMeter, runtime_folder

PROGRAM = Path(__file__).with_name("pace_process.py")


@contextlib.contextmanager
def started(folder: Path, *arguments: float) -> Iterator[subprocess.Popen[str]]:
    """A process that has joined: limit, seconds, attempts at once, seconds each."""
    command = [sys.executable, str(PROGRAM), str(folder), *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline()) == {"ready": True}
        yield process


def outcome(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    line: dict[str, Any] = json.loads(process.stdout.readline())
    assert process.wait(20) == 0
    return line


def test_processes_together_keep_the_limit_and_share_it_fairly(tmp_path: Path) -> None:
    folder = tmp_path / "pace"
    with started(folder, 3, 1.5, 6, 0.03) as a, started(folder, 3, 1.5, 6, 0.03) as b:
        first, second = outcome(a), outcome(b)
    assert max(first["most"], second["most"]) == 3
    few, many = sorted((first["made"], second["made"]))
    assert few > 20
    assert many < 3 * few
    assert first["cpu_s"] + second["cpu_s"] < 1
    assert not folder.exists()


def test_a_killed_process_frees_its_places(tmp_path: Path) -> None:
    folder = tmp_path / "pace"
    meter = SharedMeter(folder, 2)
    with started(folder, 2, 60, 2, 60) as process:
        deadline = time.monotonic() + 10
        while isinstance(meter.take(0), tuple):
            meter.give_back()
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.kill()
        process.wait()

    async def go_on() -> int:
        async with Pacer(2, meter).slot() as slot:
            return slot.concurrency

    assert asyncio.run(asyncio.wait_for(go_on(), 3)) == 1
    meter.close()
    assert not folder.exists()


def test_a_window_learnt_by_one_holds_for_the_other(tmp_path: Path) -> None:
    a, b = SharedMeter(tmp_path / "pace", 16), SharedMeter(tmp_path / "pace", 16)
    epoch, together = a.take(0)
    assert b.take(0) == (epoch, together + 1)
    assert a.cut(epoch, None) == 0
    assert b.cut(epoch, None) == 0, "a burst is one piece of news, whichever process hears it"
    b.take(0)
    assert (a.window, b.window) == (8, 8)
    own = a.cut(epoch + 1, 5.0)
    wait = b.take(0)
    assert isinstance(wait, float)
    assert 4 < wait <= 5, "another cut without a success: all pause"
    assert isinstance(a.take(own), tuple), "who waited it out by itself goes on"
    for meter in (a, b):
        meter.close()


def test_the_smallest_limit_holds_for_all(tmp_path: Path) -> None:
    a, b = SharedMeter(tmp_path / "pace", 5), SharedMeter(tmp_path / "pace", 2)
    assert [isinstance(a.take(0), tuple) for _ in range(3)] == [True, True, False]
    b.close()
    assert [isinstance(a.take(0), tuple) for _ in range(4)] == [True, True, True, False]
    a.close()


def test_a_state_that_nobody_uses_is_begun_anew(tmp_path: Path) -> None:
    folder = tmp_path / "pace"
    with started(folder, 4, 60, 1, 60) as process:
        process.kill()
        process.wait()
    assert (folder / "state").exists()
    os.truncate(folder / "state", 7)
    meter = SharedMeter(folder, 4)
    assert meter.take(0) == (0, 1)
    assert meter.window == 4
    meter.close()


def test_a_stopped_process_loses_its_place_in_the_queue(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(shared_pace, "OVERDUE_S", 0.05)
    a, stopped, b = (SharedMeter(tmp_path / "pace", 1) for _ in range(3))
    assert isinstance(a.take(0), tuple)
    assert isinstance(stopped.take(0), float)
    a.give_back()
    assert isinstance(b.take(0), float), "it came later"
    time.sleep(0.1)
    assert isinstance(b.take(0), tuple)
    for meter in (a, stopped, b):
        meter.close()


def test_waiting_alone_does_not_poll(tmp_path: Path) -> None:
    async def run() -> int:
        meter = SharedMeter(tmp_path / "pace", 1)
        asked = 0
        take = meter.take

        def counted(waited_out: int) -> Any:
            nonlocal asked
            asked += 1
            return take(waited_out)

        meter.take = counted  # type: ignore[method-assign]
        pacer = Pacer(1, meter)

        async def one() -> None:
            async with pacer.slot():
                await asyncio.sleep(0.1)

        await asyncio.gather(*(one() for _ in range(3)))
        meter.close()
        return asked

    assert asyncio.run(run()) < 12


def test_a_folder_that_cannot_be_used_means_pacing_alone(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    pacers = Pacers(4, tmp_path / "file")
    assert pacers.of("http://host", "kf-1").limit == 4
    assert pacers.alone is not None
    pacers.close()


def test_the_runtime_folder_is_the_users_own(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert runtime_folder() == tmp_path / "xspec" / "pace"
    (tmp_path / "xspec").chmod(0o777)
    assert runtime_folder() is None, "anybody could write there"


@pytest.mark.parametrize(
    ("per_second", "at_once", "hint"),
    [(8, 99, "retry-after"), (8, 99, "none"), (8, 99, "reset"), (999, 2, "retry-after"), (999, 2, "none")],
)
def test_a_low_tier_key_finishes_slowly(
    lab: Any, tmp_path: Path, per_second: int, at_once: int, hint: str
) -> None:
    """Two routes as of two processes, sixteen calls at once, a provider that allows little: no call fails."""

    async def run() -> None:
        running, granted, refused = 0, [], 0

        async def answer(n: int, request: Any) -> bytes:
            nonlocal running, refused
            now = time.monotonic()
            window = [at for at in granted if at > now - 1]
            if len(window) >= per_second or running >= at_once:
                refused += 1
                free_s = max(0.05, window[0] + 1 - now) if len(window) >= per_second else 0.05
                headers = {
                    "retry-after": {"retry_after": f"{free_s:.2f}"},
                    "reset": {
                        "x_ratelimit_remaining_requests": "0",
                        "x_ratelimit_reset_requests": f"{int(1000 * free_s)}ms",
                    },
                    "none": {},
                }[hint]
                return lab.http(429, lab.error("slow down"), **headers)
            granted.append(now)
            running += 1
            await asyncio.sleep(0.02)
            running -= 1
            return lab.http(200, lab.completion())

        async with lab.served(answer) as server:
            retry = {"backoff_s": 0.1, "backoff_max_s": 5}
            data = lab.spec([lab.member(server.port)], route={"max_wait_s": 20, "retry": retry})
            pacers = [Pacers(8, tmp_path / "pace") for _ in range(2)]
            routes = [lab.make(data, pacers=p, sleep=asyncio.sleep) for p in pacers]
            calls = [routes[n % 2].call(lab.conversation(), lab.pins, lab.place) for n in range(24)]
            replies = await asyncio.wait_for(asyncio.gather(*calls), 60)
            assert len(replies) == len(granted) == 24
            assert refused + 24 == len(server.requests) == len(lab.ended)
            assert refused < 40
            assert max(row.concurrency for row in lab.rows if row.kind == "attempt_started") <= 8
            for one in (*routes, *pacers):
                closed = one.aclose() if hasattr(one, "aclose") else one.close()
                if closed is not None:
                    await closed

    asyncio.run(run())
