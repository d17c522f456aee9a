"""AppWorld's data as files below a root: splits, tasks, their digests and known solutions. Standard library only.

data/datasets/SPLIT.txt                         task ids, one a line
data/tasks/ID/{specs.json, dbs/, ground_truth/}
data/base_dbs/APP.db, data/api_docs/            what all tasks share
"""

import glob
import hashlib
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from xspec.benchmarks.protocol import BadInput, Solution, TaskEntry

VERSION = "0.1.0"
"""The version of the data that the pinned engine reads."""

ROOT_VARIABLE = "APPWORLD_ROOT"
SOLUTION = "xspec_solution.json"
_DIFFICULTIES = {1: "easy", 2: "medium", 3: "hard"}
_TASK_FILES = (
    "specs.json",
    "dbs/supervisor.jsonl",
    *(f"ground_truth/{name}" for name in ("evaluation.py", "metadata.json", "answer.json", "test_data.json")),
)


class AppWorldData:
    """The data below the root that APPWORLD_ROOT names. Raises BadInput, with what to do, unless it is whole."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        root = environ.get(ROOT_VARIABLE)
        if not root:
            raise BadInput(
                f"{ROOT_VARIABLE} is not set, so AppWorld's data are not found; {_how_to_get('~/appworld')}"
            )
        self.root = Path(root).expanduser().absolute()
        self.data = self.root / "data"
        if "memory" in str(self.root):
            raise BadInput(
                f"{ROOT_VARIABLE} is {self.root}, and AppWorld takes a path with the word memory in it for a "
                "database in memory; move the data to another folder"
            )
        if not self.data.is_dir():
            raise BadInput(f"there are no AppWorld data in {self.root}; {_how_to_get(root)}")
        for name in ("datasets", "tasks", "base_dbs", "api_docs/standard"):
            if not (self.data / name).is_dir() or not any((self.data / name).iterdir()):
                raise BadInput(self._half(self.data / name, "is missing or empty"))

    def task_ids(self, split: str) -> list[str]:
        """Tasks of a list in data/datasets, in its order. A tag after a colon is no part of an id."""
        known = sorted(path.stem for path in (self.data / "datasets").glob("*.txt"))
        if split not in known:
            raise BadInput(
                f"appworld has no split {split!r}; the lists in {self.data}/datasets: {', '.join(known)}"
            )
        lines = (self.data / "datasets" / f"{split}.txt").read_text().split("\n")
        ids = [line.partition(":")[0].strip() for line in lines if line.strip()]
        if not ids:
            raise BadInput(self._half(self.data / "datasets" / f"{split}.txt", "names no task"))
        return list(dict.fromkeys(ids))

    def require(self, task: str) -> None:
        """Raises BadInput unless the task's files are all there and of the right version."""
        folder = self.folder(task)
        for name in _TASK_FILES:
            if not (folder / name).is_file():
                raise BadInput(self._half(folder / name, "is missing"))
        # What a task changes, it changes in an app's shared database.
        for changes in sorted((folder / "dbs").glob("*.jsonl")):
            base = self.data / "base_dbs" / f"{changes.stem}.db"
            if not base.is_file() or not base.stat().st_size:
                raise BadInput(self._half(base, "is missing or empty"))
        found = self.specs(task).get("db_version")
        if found != VERSION:
            told = f"the data of task {task} have version {found}, and the engine reads {VERSION}"
            raise BadInput(f"{told}; {_how_to_get(str(self.root))}")

    def folder(self, task: str) -> Path:
        return self.data / "tasks" / task

    def specs(self, task: str) -> dict[str, Any]:
        return self._json(self.folder(task) / "specs.json")

    def difficulty(self, task: str) -> int:
        return int(self._json(self.folder(task) / "ground_truth" / "metadata.json")["difficulty"])

    def solution(self, task: str) -> Solution | None:
        """The known solution of a task, where its data carry one."""
        path = self.folder(task) / "ground_truth" / SOLUTION
        if not path.is_file():
            return None
        found = self._json(path)
        solution: Solution = {"calls": found["calls"], "answer": "", "commit": found["commit"]}
        solution.update({name: found[name] for name in ("give_up", "detour") if name in found})  # type: ignore[typeddict-item]
        return solution

    def entries(self, tasks: Iterable[str], split: str) -> list[TaskEntry]:
        """Rows of the manifest."""
        shared = _digest_of_files(self.data, [self.data / "base_dbs", self.data / "api_docs"])
        return [self._entry(task, split, shared) for task in tasks]

    def _entry(self, task: str, split: str, shared: str) -> TaskEntry:
        folder, specs = self.folder(task), self.specs(task)
        solution = folder / "ground_truth" / SOLUTION
        scenario = task.rpartition("_")[0] or task
        own = _digest_of_files(folder, [folder / "specs.json", folder / "dbs", folder / "ground_truth"])
        return {
            "id": task,
            "cluster": scenario,
            "cluster_tasks": max(1, sum(1 for _ in (self.data / "tasks").glob(f"{glob.escape(scenario)}_*"))),
            "stratum": split,
            "difficulty": _DIFFICULTIES.get(self.difficulty(task)),
            "instruction": instruction(specs),
            "toolset": "code",
            "data": "sha256:" + hashlib.sha256(f"{shared} {own}".encode()).hexdigest(),
            "solution": _digest_of_files(folder, [solution]) if solution.is_file() else None,
        }

    def _json(self, path: Path) -> dict[str, Any]:
        try:
            found = json.loads(path.read_bytes())
        except OSError as error:
            raise BadInput(self._half(path, f"cannot be read ({error.strerror})")) from None
        except ValueError:
            raise BadInput(self._half(path, "is not JSON")) from None
        if not isinstance(found, dict):
            raise BadInput(self._half(path, "is not a JSON object"))
        return found

    def _half(self, path: Path, what: str) -> str:
        return f"the AppWorld data are not whole: {path} {what}; {_how_to_get(str(self.root))}"


def instruction(specs: Mapping[str, Any]) -> str:
    """What the agent is asked, and by whom."""
    person = specs["supervisor"]
    return (
        f"{specs['instruction']}\n\nThis is asked by {person['first_name']} {person['last_name']} "
        f"(e-mail {person['email']}, phone {person['phone_number']}), on whose behalf you act."
    )


def _how_to_get(root: str) -> str:
    """The two commands that a user without data runs."""
    return f"run: {sys.prefix}/bin/appworld download data --root {root}, then: export {ROOT_VARIABLE}={root}"


def _digest_of_files(base: Path, paths: Iterable[Path]) -> str:
    """Digest of files and all files below folders, by name and content; compiled Python is not data."""
    state = hashlib.sha256()
    for path in paths:
        files = [path] if path.is_file() else sorted(path.rglob("*"))
        for file in files:
            if file.is_file() and "__pycache__" not in file.parts:
                with file.open("rb") as opened:
                    content = hashlib.file_digest(opened, "sha256").hexdigest()
                state.update(f"{file.relative_to(base).as_posix()} {content}\n".encode())
    return "sha256:" + state.hexdigest()
