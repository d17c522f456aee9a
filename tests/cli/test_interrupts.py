"""Ctrl-C while the program starts: Python drops it inside a finaliser, and xspec must have heard it all the same."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import runpy, signal, sys
from xspec.cli import environment

class Dropped:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)

load = environment.load_dotenv

def load_and_drop():
    Dropped()
    load()

if sys.argv.pop(1) == "interrupted":
    environment.load_dotenv = load_and_drop
runpy.run_module("xspec", run_name="__main__")
"""
TINY = ("benchmark.tasks=[banking.user_task_0]", "k=1")


@pytest.mark.parametrize("launcher", [(), ("+arm=baseline", "hydra/launcher=joblib", "-m")])
def test_an_interrupt_that_python_drops_ends_the_command_before_anything_is_begun(
    tmp_path: Path, launcher: tuple[str, ...]
) -> None:
    store = tmp_path / "store"
    command = [sys.executable, "-c", PROGRAM, "interrupted", *TINY, *launcher, f"store={store}"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 130, ended.stderr
    assert ended.stderr == "xspec: interrupted\n"
    assert not list(store.glob("executions/ex-*"))


def test_without_an_interrupt_the_same_command_runs(tmp_path: Path) -> None:
    store = tmp_path / "store"
    command = [sys.executable, "-c", PROGRAM, "left alone", *TINY, f"store={store}"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert len(list(store.glob("executions/ex-*"))) == 1
