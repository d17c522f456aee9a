"""Benchmarks, each in its own process. A new one is one file here and one line in BENCHMARKS."""

import hashlib
import importlib.metadata
import sys
from dataclasses import dataclass
from pathlib import Path

_HERE = Path(__file__).resolve().parent


@dataclass(frozen=True, slots=True)
class Launch:
    """How the worker of a benchmark is started: its file (see xspec.benchmarks.protocol), the packages that
    decide what it says, and the interpreter.
    """

    module: Path
    packages: tuple[str, ...] = ()
    interpreter: str = sys.executable


BENCHMARKS: dict[str, Launch] = {
    "agentdojo": Launch(_HERE / "agentdojo.py", packages=("agentdojo", "pydantic")),
    "choices": Launch(_HERE / "choices.py"),
}


def package_fingerprint(kind: str) -> str:
    """Changes when the benchmark's packages or the worker's files do: its answers are then asked for anew."""
    launch = BENCHMARKS[kind]
    state = hashlib.sha256()
    for path in sorted(launch.module.parent.glob("*.py")):
        state.update(path.read_bytes())
    for name in launch.packages:
        state.update(f"{name}=={importlib.metadata.version(name)}".encode())
    return state.hexdigest()
