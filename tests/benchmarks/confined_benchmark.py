"""A benchmark for tests of confinement: its worlds run any Python. Loaded in a worker, never here."""

import contextlib
import io
import os
from pathlib import Path
from typing import Any

from xspec.benchmarks.confinement import Needs
from xspec.benchmarks.protocol import BadInput, WorldBroke


def make(version: str, split: str, settings: dict[str, Any]) -> "Confined":
    return Confined(Path(settings["data"]))


class Confined:
    def __init__(self, data: Path) -> None:
        self._data = data
        self._names: dict[str, Any] = {}

    def describe(self) -> dict[str, Any]:
        return {"benchmark": "confined", "tasks": [{"id": "c.0"}]}

    def needs(self, task: str, folder: str, *, judging: bool) -> Needs:
        if task != "c.0":
            raise BadInput(f"confined has no task {task!r}")
        read = [str(self._data / "task"), *([str(self._data / "truth")] if judging else [])]
        return Needs(tuple(read), (folder,), memory_mb=200)

    def open(self, task: str, run: int, folder: str) -> None:
        os.chdir(folder)
        self._names = {"task": (self._data / "task").read_text(), "truth": str(self._data / "truth")}

    def act(self, action: dict[str, Any]) -> dict[str, Any]:
        if action["code"] == "break":
            raise WorldBroke("the disk is full")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(action["code"], self._names)
        return {"content": printed.getvalue(), "error": False, "done": "done" in self._names, "calls": []}

    def judge(self, task: str, folder: str, answer: str) -> dict[str, Any]:
        made = Path(folder, "answer").read_text() if Path(folder, "answer").exists() else None
        truth = (self._data / "truth").read_text()
        return {"passed": made == truth, "detail": {"made": made, "pid": os.getpid()}}

    def close(self) -> None:
        raise AssertionError("a member that ran code ends with its world")

    def solution(self, task: str) -> None:
        return None
