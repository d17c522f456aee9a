"""Code written by a model reaches its own folder and nothing else: no key, file, process, network, verdict."""

import asyncio
import os
import tempfile
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from xspec.benchmarks import Launch, confinement
from xspec.benchmarks.pool import WorkerPool, World
from xspec.errors import SpecError, WorkerDied, WorkerError
from xspec.records.executions import ExecutionFolder

CONFINED = Launch(Path(__file__).with_name("confined_benchmark.py"), worlds_per_member=1, keeps_output=True)

pytestmark = pytest.mark.skipif(
    confinement.landlock_abi() < 3 or not confinement.has_seccomp(),
    reason="this kernel offers no Landlock (3 or later) or no seccomp",
)

Play = Callable[[WorkerPool], Coroutine[Any, Any, None]]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "task").write_text("what to do")
    (tmp_path / "truth").write_text("42")
    return tmp_path


def play(data: Path, scenario: Play) -> None:
    async def run() -> None:
        settings = {"data": str(data)}
        async with WorkerPool("confined", "1", "all", settings, members=2, log=None, launch=CONFINED) as pool:
            await scenario(pool)

    asyncio.run(run())


async def run_code(world: World, code: str) -> dict[str, Any]:
    return await world.act({"code": code}, 10)


def hostile(folder: Path) -> dict[str, str]:
    """Code → how what it gets begins."""
    secret = folder / ".env"
    secret.write_text("SOME_API_KEY=not-for-code")
    denied, refused = "PermissionError: [Errno 13]", "PermissionError: [Errno 1]"
    return {
        f"open({str(secret)!r}).read()": denied,
        "open('/etc/passwd').read()": denied,
        "import os; os.listdir(os.path.expanduser('~'))": denied,
        f"open('/proc/{os.getpid()}/environ').read()": denied,
        "open('/proc/self/environ').read()": denied,
        "import os; open(f'/proc/{os.getppid()}/mem', 'rb')": denied,
        "open(truth).read()": denied,
        "open(truth, 'w')": denied,
        f"open({str(folder / 'new')!r}, 'w')": denied,
        "open('/dev/shm/left-behind', 'w')": denied,
        "import os; os.remove(truth)": denied,
        "import os; os.rename(truth, 'truth')": denied,
        "import os; os.link(truth, 'truth')": "OSError: [Errno 18]",
        "import os; os.symlink('/etc/passwd', 'answer')": denied,
        "import os; os.mkfifo('answer')": denied,
        "import os; os.chmod(truth, 0)": refused,
        "import os; os.utime(truth)": refused,
        "import socket; socket.socket()": refused,
        "import urllib.request; urllib.request.urlopen('http://127.0.0.1:1')": "URLError: <urlopen error [Errno 1]",
        "import subprocess; subprocess.run(['/bin/true'])": refused,
        "import os; os.execv('/bin/true', ['true'])": refused,
        "import os; os.fork()": refused,
        "import os; os.kill(os.getppid(), 9)": refused,
        f"import os; os.kill({os.getpid()}, 9)": refused,
        "import os; os.kill(-1, 9)": refused,
        "import resource as r; r.setrlimit(r.RLIMIT_DATA, (r.RLIM_INFINITY,) * 2)": "ValueError: not allowed",
        f"import resource as r; r.prlimit({os.getpid()}, r.RLIMIT_NOFILE, (3, 3))": refused,
        "x = bytearray(300 * 2**20)": "MemoryError",
        "f = open('big', 'wb', 0)\nfor _ in range(300): f.write(bytes(2**20))": "OSError: [Errno 27]",
        "import ctypes; c = ctypes.CDLL(None, use_errno=True); c.syscall(425, 1, 0); "
        "raise OSError(ctypes.get_errno(), 'io_uring')": refused,
    }


def test_hostile_code_gets_an_error_and_nothing_else(data: Path, tmp_path: Path) -> None:
    async def scenario(pool: WorkerPool) -> None:
        for code, expected in hostile(tmp_path).items():
            async with pool.world("c.0", 0, open_timeout_s=10) as world:
                observation = await run_code(world, code)
                assert observation["error"] is True, code
                assert observation["content"].startswith(expected), (code, observation)
        variables = await environment(pool)
        assert not [line for line in variables if "KEY" in line or "not-for-code" in line]

    async def environment(pool: WorkerPool) -> list[str]:
        async with pool.world("c.0", 0, open_timeout_s=10) as world:
            code = "import os; print(*(f'{k}={v}' for k, v in os.environ.items()), sep='\\n')"
            return str((await run_code(world, code))["content"]).splitlines()

    os.environ["SOME_API_KEY"] = "not-for-code"
    try:
        play(data, scenario)
    finally:
        del os.environ["SOME_API_KEY"]
    assert (data / "truth").read_text() == "42"


def test_code_that_keeps_to_its_folder_works_and_is_judged_elsewhere(data: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()

    async def scenario(pool: WorkerPool) -> None:
        async with pool.world("c.0", 0, open_timeout_s=10, folder=kept) as world:
            assert (await world.judge("", 10))["passed"] is False
            code = """
                import os, threading, xml.dom.minidom, sqlite3
                sqlite3.connect(":memory:").execute("select 1")
                os.makedirs("a/b"); open("a/b/c", "w").write("x" * 2**20); os.remove("a/b/c")
                numbers = []
                thread = threading.Thread(target=lambda: numbers.append(42)); thread.start(); thread.join()
                open("answer", "w").write(str(numbers[0]))
                print(task, os.getpid())
            """
            observation = await run_code(world, "\n".join(line[16:] for line in code.splitlines()))
            assert (observation["error"], observation["done"]) == (False, False), observation
            words, _, pid = observation["content"].strip().rpartition(" ")
            assert words == "what to do"
            assert (await run_code(world, "done = True"))["done"] is True
            verdict = await world.judge("", 10)
            assert verdict["passed"] is True
            assert verdict["detail"]["pid"] != int(pid)
        async with pool.world("c.0", 1, open_timeout_s=10) as world:
            assert (await run_code(world, "import os; print(os.getpid())"))["content"].strip() != pid
            assert (await run_code(world, "numbers"))["content"].startswith("NameError")
            assert (await world.judge("", 10))["passed"] is False

    play(data, scenario)
    assert (kept / "answer").read_text() == "42"


def test_a_world_without_a_folder_has_one_while_it_lives(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worlds = tmp_path / "temporary"
    worlds.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(worlds))

    async def scenario(pool: WorkerPool) -> None:
        async with pool.world("c.0", 0, open_timeout_s=10) as world:
            await run_code(world, "open('answer', 'w').write('42')")
            assert (await world.judge("", 10))["passed"] is True
            assert len(list(worlds.iterdir())) == 1

    play(data, scenario)
    assert list(worlds.iterdir()) == []


def test_code_that_ends_its_process_and_worlds_that_break_are_told_apart(data: Path) -> None:
    async def scenario(pool: WorkerPool) -> None:
        async with pool.world("c.0", 0, open_timeout_s=10) as world:
            with pytest.raises(WorkerDied, match=r"'act' of c\.0 \(exit code 3\)"):
                await run_code(world, "import os; os._exit(3)")
        async with pool.world("c.0", 0, open_timeout_s=10) as world:
            with pytest.raises(WorkerError, match="the disk is full"):
                await run_code(world, "break")
        with pytest.raises(SpecError, match=r"no task 'c\.9'"):
            async with pool.world("c.9", 0, open_timeout_s=10):
                pass
        assert pool.confinement == confinement.enforced()
        assert pool.surroundings()["confinement"].startswith("enforced: files (Landlock")

    play(data, scenario)


def test_what_a_system_cannot_enforce_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "NOT" not in confinement.enforced()
    monkeypatch.setattr(confinement, "landlock_abi", lambda: 0)
    assert confinement.enforced().endswith("NOT enforced: files (no Landlock)")
    monkeypatch.setattr(confinement, "_LIBC", None)
    assert "NOT enforced: files (no Landlock), network, programs" in confinement.enforced()


def test_no_output_folder_is_used_twice(tmp_path: Path) -> None:
    execution = ExecutionFolder(tmp_path)
    folders = []
    for _ in range(3):
        folder = execution.begin_world_folder(2, "c.0", 1)
        assert folder == execution.world_folder(2, "c.0", 1)
        (folder / "mark").write_text(str(len(folders)))
        folders.append(folder)
    marks = {path.parent.name: path.read_text() for path in tmp_path.glob("worlds/2/*/mark")}
    assert marks == {"c.0~1": "2", "c.0~1.abandoned0": "0", "c.0~1.abandoned1": "1"}
