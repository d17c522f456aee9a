"""Benchmarks, each in its own process. A new one is one file here and one line in BENCHMARKS."""

import hashlib
import importlib.metadata
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from xspec.benchmarks import environments
from xspec.benchmarks.worker_variables import worker_environment

_HERE = Path(__file__).resolve().parent


@dataclass(frozen=True, slots=True)
class Launch:
    """How the worker of a benchmark is started: its file (see xspec.benchmarks.protocol), the packages that
    decide what it says, and the interpreter, which is that of `environment` if it has one of its own.

    `variables` are read by the benchmark and passed through; `data` are a variable and a folder below the one it names,
    whose files the manifest depends on. A member serves `worlds_per_member` worlds and is then replaced (None: as many
    as there are). With `keeps_output` each trial gives its world a folder of its own (protocol.CodeBenchmark).
    `splits` together have all tasks, where the settings `unfiltered` leave none out.
    """

    module: Path
    packages: tuple[str, ...] = ()
    interpreter: str = sys.executable
    environment: str | None = None
    variables: tuple[str, ...] = ()
    data: tuple[str, str] | None = None
    worlds_per_member: int | None = None
    keeps_output: bool = False
    splits: tuple[str, ...] = ("all",)
    unfiltered: Mapping[str, str] = field(default_factory=dict)

    def python(self) -> str:
        """The interpreter. Raises EnvironmentMissing if its environment has to be made first."""
        if self.environment is None:
            return self.interpreter
        return str(environments.interpreter(environments.require(self.environment)))

    def process_variables(self, environ: Mapping[str, str]) -> dict[str, str]:
        """The environment variables of the worker, out of those of xspec's own process."""
        own = environments.variables(self.environment) if self.environment else {}
        return {**worker_environment(environ, self.variables), **own}

    def version(self, package: str) -> str | None:
        """The installed version of a package, in the worker's environment."""
        if self.environment is None:
            return importlib.metadata.version(package)
        return environments.installed_version(environments.require(self.environment), package)


BENCHMARKS: dict[str, Launch] = {
    "agentdojo": Launch(_HERE / "agentdojo.py", packages=("agentdojo", "pydantic")),
    "appworld": Launch(
        _HERE / "appworld.py",
        packages=("appworld",),
        environment="appworld",
        variables=("APPWORLD_ROOT",),
        data=("APPWORLD_ROOT", "data"),
        worlds_per_member=1,
        keeps_output=True,
        splits=("train", "dev", "test_normal", "test_challenge"),
        unfiltered={"difficulty": "all"},
    ),
    "choices": Launch(_HERE / "choices.py"),
}


def package_fingerprint(kind: str) -> str:
    """Changes when the benchmark's packages or the worker's files do: its answers are then asked for anew.

    Raises EnvironmentMissing.
    """
    launch = BENCHMARKS[kind]
    state = hashlib.sha256()
    for path in sorted(launch.module.parent.glob("*.py")):
        state.update(path.read_bytes())
    for name in launch.packages:
        state.update(f"{name}=={launch.version(name)}".encode())
    for name in launch.variables:
        state.update(f"{name}={os.environ.get(name)}".encode())
    if launch.data is not None and (root := os.environ.get(launch.data[0])):
        _stamp(Path(root).expanduser() / launch.data[1], state)
    return state.hexdigest()


def _stamp(folder: Path, state: "hashlib._Hash") -> None:
    """Sizes and times of all files below a folder: changed data are asked for anew, and then judged by content."""
    for path, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(files):
            found = os.stat(os.path.join(path, name))
            state.update(f"{path}/{name} {found.st_size} {found.st_mtime_ns}\n".encode())
