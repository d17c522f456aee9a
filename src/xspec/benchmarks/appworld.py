"""AppWorld: tasks of a person with nine apps, acted in by blocks of Python. Runs in the environment `appworld`.

The data are the user's own, below APPWORLD_ROOT (see xspec.benchmarks.appworld_data). A cluster is a scenario, from
which three tasks are made; the stratum is the split.
"""

import importlib.metadata
import os
from collections.abc import Mapping
from typing import Any

from xspec.benchmarks import appworld_data
from xspec.benchmarks.appworld_data import AppWorldData
from xspec.benchmarks.appworld_engine import Engine, EngineWorld
from xspec.benchmarks.confinement import Needs
from xspec.benchmarks.protocol import BadInput, Manifest, Observation, Solution, Verdict

SETTINGS: dict[str, type] = {
    "difficulty": str,
    "memory_mb": int,
    "random_seed": int,
    "raise_on_extra_parameters": bool,
    "max_interactions": int,
    "max_api_calls_per_interaction": int,
    "timeout_seconds": int,
}
"""Name → type. All have to be given: what a world does may depend on each of them."""

DIFFICULTIES = ("all", "easy", "medium", "hard")
_WORLD = (
    "random_seed",
    "raise_on_extra_parameters",
    "max_interactions",
    "max_api_calls_per_interaction",
    "timeout_seconds",
)


def make(version: str, split: str, settings: Mapping[str, Any]) -> "AppWorld":
    """`split` is the name of a list in data/datasets."""
    if version != appworld_data.VERSION:
        raise BadInput(f"appworld has no data of version {version!r}; it has {appworld_data.VERSION}")
    _check(settings)
    data = AppWorldData(os.environ)
    tasks = data.task_ids(split)
    for task in tasks:
        data.require(task)
    wanted = settings["difficulty"]
    if wanted != "all":
        tasks = [task for task in tasks if data.difficulty(task) == DIFFICULTIES.index(wanted)]
    if not tasks:
        raise BadInput(f"appworld, split {split}, has no task of difficulty {wanted}")
    return AppWorld(data, split, tasks, settings)


class AppWorld:
    """The tasks of one split, and once it is warm the engine, in which one world has been opened and closed."""

    def __init__(self, data: AppWorldData, split: str, tasks: list[str], settings: Mapping[str, Any]) -> None:
        self._data = data
        self._split = split
        self._tasks = tasks
        self._memory_mb = settings["memory_mb"]
        self._parameters = {name: settings[name] for name in _WORLD}
        self._engine: Engine | None = None
        self._world: EngineWorld | None = None

    def warm(self) -> None:
        self._engine = Engine(self._parameters, self._tasks[0])

    def describe(self) -> Manifest:
        return {
            "benchmark": "appworld",
            "version": appworld_data.VERSION,
            "split": self._split,
            "package": {"appworld": importlib.metadata.version("appworld")},
            "toolsets": {"code": []},
            "system": {},
            "tasks": self._data.entries(self._tasks, self._split),
        }

    def needs(self, task: str, folder: str, *, judging: bool) -> Needs:
        """The ground truth is out of reach of the member that runs a model's code."""
        if task not in self._tasks:
            raise BadInput(f"appworld, split {self._split}, has no task {task!r}")
        data, own = self._data.data, self._data.folder(task)
        read = [data / "base_dbs", data / "api_docs", own / "specs.json", own / "dbs"]
        if judging:
            read.append(own / "ground_truth")
        return Needs(tuple(map(str, read)), (folder,), self._memory_mb)

    def open(self, task: str, run: int, folder: str) -> None:
        assert self._engine is not None, "the engine is not warm"
        self._world = self._engine.open(task, folder)

    def act(self, action: Mapping[str, Any]) -> Observation:
        assert self._world is not None, "no world is open"
        code = action.get("code")
        if not isinstance(code, str):
            return {"content": 'an action is a block of Python: {"code": …}', "error": True}
        return self._world.act(code)

    def judge(self, task: str, folder: str, answer: str) -> Verdict:
        """The answer has no say: the world's supervisor was given one, or was not."""
        assert self._engine is not None, "the engine is not warm"
        return self._engine.judge(task, folder)

    def close(self) -> None:
        """The member ends with its world."""

    def solution(self, task: str) -> Solution | None:
        return self._data.solution(task)


def _check(settings: Mapping[str, Any]) -> None:
    for name, kind in SETTINGS.items():
        if name not in settings:
            raise BadInput(f"appworld needs the setting {name}; conf/benchmark/appworld.yaml has them all")
        if not _fits(settings[name], kind, least=0 if name == "random_seed" else 1):
            words = {str: "a text", int: "a whole number, 1 or more", bool: "true or false"}[kind]
            raise BadInput(f"the setting {name} of appworld is {settings[name]!r}; it is {words}")
    if unknown := sorted(settings.keys() - SETTINGS.keys()):
        raise BadInput(f"appworld has no setting {unknown[0]!r}; it has {', '.join(SETTINGS)}")
    if settings["difficulty"] not in DIFFICULTIES:
        known = ", ".join(DIFFICULTIES)
        raise BadInput(
            f"the setting difficulty of appworld is {settings['difficulty']!r}; it is one of {known}"
        )


def _fits(value: Any, kind: type, least: int) -> bool:
    return type(value) is kind and (not isinstance(value, int) or value >= least or kind is bool)
