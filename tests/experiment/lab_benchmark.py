"""A benchmark for tests of executions: starts at once, and misbehaves on request. Loaded in a worker, never here.

Each of its tasks is solved by three additions; a world's verdict is null if the answer is "null".
"""

import os
import signal
import time
from typing import Any

from xspec.benchmarks.protocol import BadInput

TASKS = 100


def make(version: str, split: str, settings: dict[str, Any]) -> "Lab":
    if version != "1":
        raise BadInput(f"lab has no version {version!r}; it has 1")
    return Lab()


def _tool(name: str, **properties: Any) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": f"Does {name}.",
            "parameters": {"type": "object", "properties": properties},
        },
    }


class Lab:
    def __init__(self) -> None:
        self.total = 0

    def describe(self) -> dict[str, Any]:
        return {
            "benchmark": "lab",
            "version": "1",
            "split": "all",
            "package": {"lab": "1"},
            "toolsets": {
                "all": [
                    _tool("add", amount={"type": "integer"}),
                    _tool("environ"),
                    _tool("die", once={"type": "string"}),
                    _tool("mishaps", log={"type": "string"}),
                    _tool("sleep", seconds={"type": "number"}),
                ]
            },
            "system": {},
            "tasks": [
                {
                    "id": f"lab.task_{n}",
                    "cluster": f"lab.task_{n}",
                    "stratum": "lab",
                    "difficulty": None,
                    "instruction": f"Bring the total to {3 * (n + 1)}.",
                    "toolset": "all",
                    "data": None,
                    "solution": None,
                }
                for n in range(TASKS)
            ],
        }

    def open(self, task: str, run: int) -> None:
        self.total, self.wanted = 0, 3 * (int(task.rpartition("_")[2]) + 1)

    def act(self, action: dict[str, Any]) -> dict[str, Any]:
        name, arguments = action["name"], action["arguments"]
        if name == "add":
            self.total += arguments["amount"]
        elif name == "environ":
            return {"content": "\n".join(f"{k}={v}" for k, v in os.environ.items()), "error": False}
        elif name == "die":
            once = arguments.get("once")
            if once is None:
                os._exit(9)
            if not os.path.exists(once):
                open(once, "w").close()
                os._exit(9)
        elif name == "mishaps":
            mishaps(arguments["log"])
        elif name == "sleep":
            time.sleep(arguments["seconds"])
        return {"content": f"total {self.total}", "error": False}

    def judge(self, answer: str) -> dict[str, Any]:
        return {"passed": None if answer == "null" else self.total == self.wanted, "detail": {}}

    def close(self) -> None:
        self.total = 0

    def solution(self, task: str) -> dict[str, Any] | None:
        amount = int(task.rpartition("_")[2]) + 1
        call = {"name": "add", "arguments": {"amount": amount}}
        return {"calls": [call, call, call], "answer": "done", "commit": 2}


def mishaps(log: str) -> None:
    """What a machine may do in quick succession: it kills the member first, then the zygote, then nothing more."""
    before = os.path.getsize(log) if os.path.exists(log) else 0
    with open(log, "a") as file:
        file.write(".")
    if before < 2:
        os.kill(os.getpid() if before == 0 else os.getppid(), signal.SIGKILL)
        time.sleep(3600)
