"""A benchmark for tests of the worker pool: its tools misbehave on request. Loaded in a worker, never here."""

import itertools
import os
import subprocess
import sys
import time
from typing import Any

from xspec.benchmarks.protocol import BadInput

print("printed while loading")


def make(version: str, split: str, settings: dict[str, Any]) -> "Tiny":
    if version == "broken":
        raise RuntimeError("the data file is missing")
    if version == "exits":
        sys.stderr.write("some noise\nFatal: no licence for this machine\n")
        os._exit(3)
    if version == "stuck":
        time.sleep(3600)
    if version.startswith("warms"):
        return Warmed(version)
    if version != "1":
        raise BadInput(f"tiny has no version {version!r}; it has 1")
    return Tiny()


class Tiny:
    def __init__(self) -> None:
        self.total = 0

    def describe(self) -> dict[str, Any]:
        tasks = [{"id": f"tiny.{n}"} for n in range(3)]
        return {"benchmark": "tiny", "tasks": tasks}

    def open(self, task: str, run: int) -> None:
        if task == "tiny.unopenable":
            raise FileNotFoundError("no such world")
        if not task.startswith("tiny."):
            raise BadInput(f"tiny has no task {task!r}")
        self.total = 0

    def act(self, action: dict[str, Any]) -> dict[str, Any]:
        name, arguments = action["name"], action["arguments"]
        if name == "add":
            self.total += arguments["amount"]
        elif name == "fail":
            raise KeyError("no such thing")
        elif name == "hang":
            for _ in itertools.count():
                pass
        elif name == "hang_in_c":
            sum(itertools.count())
        elif name == "exit":
            sys.exit(7)
        elif name == "die":
            os.kill(os.getpid(), arguments["signal"])
        elif name == "print":
            print("x" * 100_000)
            os.write(1, b"\x00\x00\x00\x02{}")
        elif name == "long":
            return {"content": "é" * arguments["length"], "error": False}
        elif name == "environ":
            return {"content": "\n".join(f"{k}={v}" for k, v in os.environ.items()), "error": False}
        elif name == "spawn":
            child = subprocess.Popen(["sleep", "3600"])
            return {"content": str(child.pid), "error": False}
        elif name == "raw":
            return {"content": arguments["text"], "error": False}
        elif name == "pid":
            return {"content": f"{os.getpid()} {os.getppid()}", "error": False}
        return {"content": f"total {self.total}", "error": False}

    def judge(self, answer: str) -> dict[str, Any]:
        if answer == "raise":
            raise ZeroDivisionError("the verdict broke")
        return {"passed": self.total == 3, "detail": {"total": self.total}}

    def close(self) -> None:
        self.total = -1

    def solution(self, task: str) -> dict[str, Any] | None:
        if task == "tiny.2":
            return None
        return {"calls": [{"name": "add", "arguments": {"amount": 3}}], "answer": "", "commit": 0}


class Warmed(Tiny):
    """Says of its worlds how often it was warmed, and by which process. Its version says how that goes wrong."""

    def __init__(self, version: str) -> None:
        super().__init__()
        self.version = version
        self.warmed: list[int] = []

    def warm(self) -> None:
        if self.version == "warms badly":
            raise BadInput("the data lack a task")
        if self.version == "warms slowly":
            time.sleep(3600)
        if self.version == "warms never":
            raise RuntimeError("the engine is broken")
        self.warmed.append(os.getpid())

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "warmed": len(self.warmed)}

    def act(self, action: dict[str, Any]) -> dict[str, Any]:
        return {"content": f"{self.warmed} in {os.getppid()}", "error": False}
