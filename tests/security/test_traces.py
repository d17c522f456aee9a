"""A canary key in what tests/experiment/test_canary.py does not look at: MLflow, crashes, a launcher's processes."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

HERE = Path(__file__).parent


def _holding(root: Path, key: str) -> list[Path]:
    """The files below a folder that hold the key."""
    return [path for path in root.rglob("*") if path.is_file() and key.encode() in path.read_bytes()]


def _overrides(server: Any) -> list[str]:
    return ["k=1", "benchmark=choices", "benchmark.limit=2", *server.overrides]


def test_mlflow_and_its_artifacts_hold_no_key(program: Any, kit: Any) -> None:
    """The server echoes the key in every field that MLflow could be told of."""
    echo = {
        **kit.completion(f"key {kit.KEY}", model=kit.KEY),
        "system_fingerprint": kit.KEY,
        "provider": kit.KEY,
    }
    server = kit.ChatServer(lambda n, request: (200, echo))
    with server.serving():
        done = program.start(*_overrides(server), LAB_KEY=kit.KEY, XSPEC_MLFLOW="now").wait()
    assert done.code in (0, 1), done.err
    assert server.requests
    stored = [path for path in program.store_path.rglob("*") if path.is_file()]
    assert {"mlflow.db"} <= {path.name for path in stored}
    assert [path for path in stored if path.suffix == ".parquet"]
    assert _holding(program.root, kit.KEY) == []


@pytest.mark.parametrize("mistake", ["raise", "abort"])
def test_a_crash_shows_no_key(program: Any, kit: Any, mistake: str) -> None:
    """A traceback, and the dump of faulthandler after a signal: both come, and neither says the key."""
    server = kit.ChatServer(lambda n, request: (200, kit.completion()))
    variables = {"LAB_KEY": kit.KEY, "MISTAKE": mistake, "XSPEC_MLFLOW": "later", "PYTHONFAULTHANDLER": "1"}
    with server.serving():
        crashed = subprocess.run(
            [sys.executable, str(HERE / "crashing_xspec.py"), *program.complete(_overrides(server))],
            cwd=program.cwd,
            env=program.environ(variables),
            capture_output=True,
            text=True,
            timeout=120,
        )
    assert server.requests
    assert crashed.returncode not in (0, 2)
    assert "_mistake" in crashed.stderr, "the crash was shown"
    assert kit.KEY not in crashed.stdout + crashed.stderr
    assert _holding(program.root, kit.KEY) == []


def test_job_processes_have_the_key_and_nothing_that_they_start(program: Any, kit: Any) -> None:
    """loky's processes call the model themselves. Nobody's command line, no worker and no file has the key."""

    def slowly(n: int, request: dict[str, Any]) -> tuple[int, Any]:
        time.sleep(0.3)
        return 200, kit.completion("no")

    server, temporary = kit.ChatServer(slowly), program.root / "tmp"
    temporary.mkdir()
    seen: dict[int, tuple[str, bool]] = {}
    with server.serving():
        running = program.start(
            *("+arm=baseline,guided", "hydra/launcher=joblib", *_overrides(server), "k=3", "-m"),
            **{"LAB_KEY": kit.KEY, "XSPEC_MLFLOW": "later", "TMPDIR": str(temporary)},
        )
        while running.process.poll() is None:
            for process in running.tree():
                try:
                    line, environ = " ".join(process.cmdline()), process.environ()
                except psutil.Error:
                    continue
                seen[process.pid] = (line, any(kit.KEY in value for value in environ.values()))
            time.sleep(0.05)
        done = running.wait()
    assert done.code in (0, 1), done.err
    assert not [line for line, _ in seen.values() if kit.KEY in line]
    workers = [has for line, has in seen.values() if "worker.py" in line]
    assert workers
    assert not any(workers)
    jobs = [has for line, has in seen.values() if "popen_loky" in line]
    assert jobs
    assert all(jobs)
    assert _holding(program.root, kit.KEY) == []
    running.assert_nothing_left()


def test_a_process_that_holds_keys_leaves_no_core_dump(program: Any, kit: Any) -> None:
    """A core file is the memory of the process, key and all."""
    code = (
        "import resource; from xspec.__main__ import main; main(['--help']); "
        "print(resource.getrlimit(resource.RLIMIT_CORE)[0])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "LAB_KEY": kit.KEY},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "0"
