"""The environment `altk`, for tests that run the real library."""

import subprocess
import sys

import pytest

from xspec.benchmarks import environments


@pytest.fixture(scope="session")
def altk_environment() -> str:
    """The interpreter of the environment `altk`, which is made if it is not there (about 20 s of CPU); it is kept.

    Processes that want it at once wait for the one that makes it.
    """
    making = [sys.executable, "-m", "xspec", "env", "create", "altk"]
    done = subprocess.run(making, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no environment with ALTK-Evolve: {done.stderr.strip()}")
    return str(environments.interpreter(environments.require("altk")))
