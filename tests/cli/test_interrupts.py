"""Ctrl-C at any moment of start-up: the command ends with 130, says one line, and leaves no process behind."""

import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

PROGRAM = Path(__file__).with_name("interrupted_xspec.py")
COMMAND = ("benchmark=choices", "k=1", "benchmark.limit=1", "provider.faults.latency_s=0")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One store for all of them: what one interrupt left must not disturb the next command."""
    return tmp_path_factory.mktemp("interrupted") / "store"


def run(cwd: Path, store: Path, *program: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *program, *COMMAND, f"store={store}"]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=200, check=False)


def processes_in(folder: Path) -> list[str]:
    found = []
    for process in psutil.process_iter():
        try:
            if Path(process.cwd()) == folder:
                found.append(" ".join(process.cmdline()))
        except psutil.Error:
            continue
    return found


@pytest.mark.parametrize(
    ("counted", "times"),
    [
        *(("import", times) for times in (1, 40, 150, 400, 650)),
        *(("callback", times) for times in (1, 150)),
        *(("subprocess.Popen", times) for times in (1, 2)),
        ("socket.connect", 1),
    ],
)
def test_an_interrupt_is_never_swallowed(tmp_path: Path, store: Path, counted: str, times: int) -> None:
    ended = run(tmp_path, store, str(PROGRAM), counted, str(times))
    assert ended.returncode == 130, ended.stderr
    assert ended.stdout == ""
    assert "Traceback" not in ended.stderr
    assert "Exception ignored" not in ended.stderr
    assert ended.stderr.startswith("xspec: ")
    assert "interrupted" in ended.stderr
    end = time.monotonic() + 20
    while processes_in(tmp_path):
        assert time.monotonic() < end, processes_in(tmp_path)
        time.sleep(0.02)


def test_the_command_then_runs_to_its_end(tmp_path: Path, store: Path) -> None:
    """And loads, on its way, nothing that its packages would import only because it is installed."""
    ended = run(tmp_path, store, "-X", "importtime", "-m", "xspec")
    assert ended.returncode == 0, ended.stderr
    loaded = {line.rsplit("|", 1)[-1].strip() for line in ended.stderr.splitlines()}
    assert loaded >= {"openai", "pyarrow", "scipy.special"}
    # Of what is tried and left out the name is told, too.
    assert loaded.isdisjoint({"pandas.core", "aiohttp.client", "mlflow"})
