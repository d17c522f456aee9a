"""AppWorld's environment, and a root with own tasks: made once a test session and shared by its processes."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from xspec.benchmarks import environments

BUILDER = Path(__file__).parent / "build_root.py"


@pytest.fixture(scope="session")
def appworld_environment() -> Path:
    """The interpreter of the environment `appworld`, which is made if it is not there; it is kept."""
    making = [sys.executable, "-m", "xspec", "env", "create", "appworld"]
    done = subprocess.run(making, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no environment with AppWorld: {done.stderr.strip()}")
    return environments.interpreter(environments.require("appworld"))


@pytest.fixture(scope="session")
def appworld_run(appworld_environment: Path) -> Callable[..., str]:
    """Runs AppWorld's interpreter with these arguments, input and variables; what it printed."""
    return lambda *arguments, stdin="", **variables: run_in(
        appworld_environment, [*map(str, arguments)], stdin, **variables
    )


@pytest.fixture(scope="session")
def appworld_root(appworld_environment: Path, made_once: Callable[..., Path]) -> Path:
    """A folder for APPWORLD_ROOT: twelve own tasks (split test_normal), four scenarios, difficulty 1 to 3."""

    def make(folder: Path) -> None:
        run_in(appworld_environment, [str(BUILDER), str(folder)])

    return made_once("appworld-root", make)


def run_in(python: Path, arguments: list[str], stdin: str = "", **variables: str) -> str:
    quiet = {"PYTHONDONTWRITEBYTECODE": "1"}  # else judging leaves compiled evaluations beside the data
    environ = {"PATH": os.environ["PATH"], **quiet, **environments.variables("appworld"), **variables}
    done = subprocess.run(
        [python, *arguments], env=environ, input=stdin, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout
