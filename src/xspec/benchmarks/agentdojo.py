"""AgentDojo's user tasks: workspace, travel, banking, slack. Runs in a worker, never in xspec's own process.

The default environments are used, without an attack. Task ids are `<suite>.<user_task_n>`; a task is its own
cluster, its suite the stratum.
"""

import hashlib
import importlib.metadata
import json
import pickle
from ast import literal_eval
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from xspec.benchmarks import agentdojo_lean as lean
from xspec.benchmarks.protocol import BadInput, Manifest, Observation, Solution, TaskEntry, Verdict

SUITES = ("banking", "slack", "travel", "workspace")


def make(version: str, split: str, settings: Mapping[str, Any]) -> "AgentDojo":
    """`split` is `all` or the name of a suite. There are no settings of its own."""
    if settings:
        raise BadInput(f"agentdojo has no setting {min(settings)!r}")
    if split != "all" and split not in SUITES:
        raise BadInput(f"agentdojo has no split {split!r}; it has all, {', '.join(SUITES)}")
    return AgentDojo(version, split)


@dataclass
class _World:
    suite: str
    task: Any
    before: Any
    now: Any
    calls: list[Any] = field(default_factory=list)


class AgentDojo:
    """The suites of one version. A world is made from a pickled environment, in under a millisecond."""

    def __init__(self, version: str, split: str) -> None:
        lean.leave_out_unneeded_imports()
        from agentdojo.agent_pipeline import tool_execution  # type: ignore[import-untyped]
        from agentdojo.functions_runtime import (  # type: ignore[import-untyped]
            FunctionCall,
            FunctionsRuntime,
        )
        from agentdojo.task_suite import load_suites  # type: ignore[import-untyped]

        if version not in load_suites._SUITES:
            raise BadInput(f"agentdojo has no version {version!r}; it has {', '.join(load_suites._SUITES)}")
        lean.install_shortcut()
        self._clock = lean.install_clock()
        self._call = FunctionCall
        self._tool_execution = tool_execution
        self._version = version
        self._split = split
        suites = load_suites.get_suites(version)
        self._suites = {name: suites[name] for name in SUITES if split in ("all", name)}
        self._runtimes = {name: FunctionsRuntime(suite.tools) for name, suite in self._suites.items()}
        self._environments = {
            name: pickle.dumps(suite.load_and_inject_default_environment({}), pickle.HIGHEST_PROTOCOL)
            for name, suite in self._suites.items()
        }
        self._world: _World | None = None

    def describe(self) -> Manifest:
        return {
            "benchmark": "agentdojo",
            "version": self._version,
            "split": self._split,
            "package": {"agentdojo": importlib.metadata.version("agentdojo")},
            "toolsets": {
                name: [_schema(tool) for tool in suite.tools] for name, suite in self._suites.items()
            },
            "system": {},
            "tasks": [
                self._entry(name, id_)
                for name, suite in self._suites.items()
                for id_ in sorted(suite.user_tasks, key=_number)
            ],
        }

    def open(self, task: str, run: int) -> None:
        self._clock.reset()
        self._world = self._fresh(task)

    def act(self, action: Mapping[str, Any]) -> Observation:
        result, error = self._run(action)
        if error is not None:
            return {"content": error, "error": True}
        return {"content": self._tool_execution.tool_result_to_str(result), "error": False}

    def _run(self, action: Mapping[str, Any]) -> tuple[Any, str | None]:
        """Carries out a tool call as AgentDojo's ToolsExecutor does: the result, or a failure worded as it does."""
        world = self._opened()
        name, arguments = action.get("name"), action.get("arguments")
        if not isinstance(name, str) or not isinstance(arguments, dict):
            return None, "a call needs a tool name and an object of arguments"
        call = self._call(function=name, args=arguments)
        world.calls.append(call)
        runtime = self._runtimes[world.suite]
        if name not in runtime.functions:
            return None, f"Invalid tool {name} provided."
        for key, value in call.args.items():
            if isinstance(value, str) and self._tool_execution.is_string_list(value):
                call.args[key] = literal_eval(value)
        found: tuple[Any, str | None] = runtime.run_function(world.now, name, call.args)
        return found

    def judge(self, answer: str) -> Verdict:
        """AgentDojo's own verdict. Some of its checks look up an entry that the agent may have removed, and
        raise; that is the agent's doing, hence a fail.
        """
        world = self._opened()
        try:
            passed = world.task.utility_from_traces(answer, world.before, world.now, world.calls)
            if passed is None:
                passed = world.task.utility(answer, world.before, world.now)
        except LookupError as error:
            return {"passed": False, "detail": {"raised": f"{type(error).__name__}: {error}"}}
        return {"passed": bool(passed), "detail": {}}

    def close(self) -> None:
        self._world = None

    def solution(self, task: str) -> Solution | None:
        """The ground truth, played to the end with verdicts on the way to find `commit`. None if it fails."""
        calls, answer = self._ground_truth(task)
        commit, gave_up = -1, False
        self.open(task, 0)
        for index, call in enumerate(calls):
            # Once giving up passes, it need not be asked again: `commit` promises a fail everywhere before
            # it.
            gave_up = gave_up or self._judged_aside("")
            if not gave_up:
                commit = index
            _, error = self._run(call)
            if error is not None:
                return None
        if not calls and not self._judged_aside(""):
            commit = 0
        passed = self.judge(answer)["passed"]
        self.close()
        return {"calls": calls, "answer": answer, "commit": commit} if passed else None

    def _judged_aside(self, answer: str) -> bool:
        """The verdict so far, on a copy: a check might change what it looks at."""
        world = self._opened()
        before, now = pickle.loads(pickle.dumps((world.before, world.now), pickle.HIGHEST_PROTOCOL))
        self._world = _World(world.suite, world.task, before, now, list(world.calls))
        passed = self.judge(answer)["passed"]
        self._world = world
        return bool(passed)

    def _entry(self, suite: str, id_: str) -> TaskEntry:
        name = f"{suite}.{id_}"
        world = self._fresh(name)
        calls, answer = self._ground_truth(name)
        return {
            "id": name,
            "cluster": name,
            "stratum": suite,
            "difficulty": _difficulty(type(world.task)),
            "instruction": world.task.PROMPT,
            "toolset": suite,
            "data": _digest([world.now.model_dump(mode="json"), lean.CLOCK_START.isoformat()]),
            "solution": _digest([calls, answer]),
        }

    def _ground_truth(self, task: str) -> tuple[list[dict[str, Any]], str]:
        world = self._fresh(task)
        calls = [
            {"name": call.function, "arguments": dict(call.args)}
            for call in world.task.ground_truth(world.now)
        ]
        return json.loads(json.dumps(calls)), world.task.GROUND_TRUTH_OUTPUT

    def _fresh(self, task: str) -> _World:
        suite, _, id_ = task.partition(".")
        found = self._suites[suite].user_tasks.get(id_) if suite in self._suites else None
        if found is None:
            raise BadInput(f"agentdojo {self._version}, split {self._split}, has no task {task!r}")
        before, now = (
            found.init_environment(pickle.loads(self._environments[suite])) for _ in ("before", "now")
        )
        return _World(suite, found, before, now)

    def _opened(self) -> _World:
        if self._world is None:
            raise RuntimeError("no world is open")
        return self._world


def _schema(tool: Any) -> dict[str, Any]:
    """The tool as AgentDojo shows it to a model of OpenAI's."""
    return {
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters.model_json_schema(),
        },
    }


def _difficulty(task: type) -> str | None:
    """What the task's own class says. The base class calls every task easy, which says nothing."""
    for cls in task.__mro__:
        if cls.__name__ == "BaseUserTask":
            break
        if "DIFFICULTY" in vars(cls):
            return str(vars(cls)["DIFFICULTY"].name).lower()
    return None


def _number(id_: str) -> int:
    return int(id_.rpartition("_")[2])


def _digest(value: Any) -> str:
    data = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":")).encode()
    return "sha256:" + hashlib.sha256(data).hexdigest()
