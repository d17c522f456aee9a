"""The server as a process: how it is started, and that it never outlives its parent."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from xspec.errors import RouteStopped, UserError
from xspec.rehearsal.address import member_key
from xspec.rehearsal.config import RehearsalConfig
from xspec.rehearsal.process import RehearsalServer
from xspec.rehearsal.server import main

Member = Callable[..., dict[str, Any]]
SERVER = [sys.executable, "-m", "xspec.rehearsal.server"]


def fetch(url: str) -> Any:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=10) as reply:
        return json.load(reply)


def gone(pid: int, within_s: float = 5.0) -> bool:
    """Whether the process ends in time."""
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.02)
    return False


def test_a_server_starts_serves_and_ends(
    tmp_path: Path, member: Member, tasks: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "not-for-children")
    plain = member()

    async def run() -> int:
        async with RehearsalServer(tmp_path / "logs" / "server.log") as server:
            base = await server.start({"members": {member_key(plain): plain}, "tasks": tasks})
            assert base == server.base_url
            assert fetch(f"{base}/v1/models")["data"][0]["id"] == "rehearsal-a"
            assert server.pid is not None
            assert "SOME_API_KEY" not in psutil.Process(server.pid).environ()
            server.check()
            pid = server.pid
        server.check()
        await server.wait_crashed()
        await server.aclose()
        return pid

    assert gone(asyncio.run(run()))


def test_a_crash_is_noticed(tmp_path: Path) -> None:
    async def run() -> None:
        async with RehearsalServer(tmp_path / "server.log") as server:
            await server.start({})
            assert server.pid is not None
            os.kill(server.pid, signal.SIGKILL)
            with pytest.raises(RouteStopped, match="ended with code -9"):
                await asyncio.wait_for(server.wait_crashed(), 5)
            with pytest.raises(RouteStopped, match="it resumes"):
                server.check()

    asyncio.run(run())


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    async def run() -> None:
        async with RehearsalServer(tmp_path / "server.log") as server:
            with pytest.raises(RouteStopped, match="member m needs model, behaviour and faults"):
                await server.start({"members": {"m": {}}})

    asyncio.run(run())


def test_a_killed_parent_leaves_no_server(tmp_path: Path) -> None:
    program = f"""
        import asyncio
        from pathlib import Path
        from xspec.rehearsal.process import RehearsalServer

        async def run():
            async with RehearsalServer(Path({str(tmp_path / "log")!r})) as server:
                await server.start({{}})
                print(server.pid, flush=True)
                await asyncio.sleep(60)

        asyncio.run(run())
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert psutil.pid_exists(pid)
        parent.kill()
    assert gone(pid)


def test_the_server_dies_when_stdin_closes() -> None:
    with subprocess.Popen(
        [*SERVER, "--config", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(b'{"members": {}}\n')
        server.stdin.flush()
        port = json.loads(server.stdout.readline())["port"]
        assert fetch(f"http://127.0.0.1:{port}/stats")["requests"] == 0
        server.stdin.close()
        assert server.wait(5) == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_alone_it_runs_until_it_is_interrupted(
    tmp_path: Path, member: Member, tasks: dict[str, Any], number: signal.Signals
) -> None:
    plain = member()
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"members": {member_key(plain): plain}, "tasks": tasks}))
    with subprocess.Popen(
        [*SERVER, "--config", str(config)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        line = server.stdout.readline()
        assert line.startswith("SIMULATED MODEL at http://127.0.0.1:")
        fetch(line.split()[3] + "/models")
        server.send_signal(number)
        assert server.wait(5) == 0


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_other_hosts_than_loopback_are_refused(host: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--host", host]) == 2
    assert "is not a loopback address" in capsys.readouterr().err


def test_a_busy_port_is_one_line_and_exit_2(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["--port", str(port)]) == 2
    assert capsys.readouterr().err == (
        f"error: port {port} on 127.0.0.1 is in use; choose another --port, or 0 for a free one\n"
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read: No such file"),
        ("{", "is not JSON"),
        ('{"members": 3}', "needs the form"),
        ('{"tasks": {"t": {"instruction": "x"}}}', "task t needs instruction"),
        (
            '{"members": {"m": {"model": "m", "behaviour": {}, "faults": {}}}}',
            "unstable_tasks: Field required",
        ),
    ],
)
def test_a_wrong_config_is_one_line_and_exit_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str | None, message: str
) -> None:
    config = tmp_path / "config.json"
    if content is not None:
        config.write_text(content)
    assert main(["--config", str(config)]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1


def test_config_from_something_that_is_no_pipe_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}\n")
    with (tmp_path / "config.json").open("rb") as file:
        ended = subprocess.run(
            [*SERVER, "--config", "-"], stdin=file, capture_output=True, text=True, check=False
        )
    assert ended.returncode == 2
    assert "expects a pipe" in ended.stderr


def test_faults_that_exclude_one_another_fit_in_one(member: Member) -> None:
    plain = member(reset=0.6, stall=0.5)
    with pytest.raises(UserError, match="add up to more than 1"):
        RehearsalConfig.of({"members": {"m": plain}})


def test_the_server_imports_neither_numpy_nor_openai() -> None:
    code = (
        "import sys, xspec.rehearsal.server; print(sorted({'numpy', 'scipy', 'openai'} & set(sys.modules)))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "[]"
