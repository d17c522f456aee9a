"""What a benchmark file provides, and what travels between it and xspec.

A benchmark file defines `make(version, split, settings) -> Benchmark` and is loaded by path in a worker
process under the interpreter of its own environment: it may import the standard library, its benchmark, and
the few files of this folder that import nothing else (this one among them).

Requests to a member, and the `ok` of its answers:

    {"verb": "describe"}                        the task manifest
    {"verb": "solutions", "tasks": […]}         task -> Solution, for those that have one
    {"verb": "open", "task": …, "run": …}       null
    {"verb": "act", "action": …}                Observation
    {"verb": "judge", "answer": …}              Verdict
    {"verb": "close"}                           null

A benchmark whose worlds run code written by a model (`keeps_output` in its Launch) is a CodeBenchmark: `open` and
`judge` then have `folder`, a folder of the trial's own, `judge` has the `task`, and goes to a member of its own.

An answer without `ok` has `error`, one line, and `input: true` where the user's input is to blame.
"""

from collections.abc import Mapping
from typing import Any, NotRequired, Protocol, TypedDict, runtime_checkable

from xspec.benchmarks.confinement import Needs

CODE_TOOLSET = "code"
"""The toolset, empty, of tasks that are acted in by blocks of code instead of tool calls."""


class BadInput(Exception):
    """A version, split, setting or task that the benchmark does not have. The message says which it has."""


class WorldBroke(Exception):
    """The world cannot go on, and nothing the agent did is to blame: the trial becomes invalid."""


class TaskEntry(TypedDict):
    """One row of the manifest. `data` and `solution` are digests (`sha256:…`).

    `cluster_tasks` says how many tasks the benchmark has of the cluster, where the manifest may lack some.
    """

    id: str
    cluster: str
    cluster_tasks: NotRequired[int]
    stratum: str
    difficulty: str | None
    instruction: str
    toolset: str
    data: str
    solution: str | None


class Manifest(TypedDict):
    """What a benchmark contains: the same bytes in every process. Tasks stand in natural order of id."""

    benchmark: str
    version: str
    split: str
    package: dict[str, str]
    toolsets: dict[str, list[dict[str, Any]]]
    system: dict[str, str]
    tasks: list[TaskEntry]


class Solution(TypedDict):
    """A known way to pass. Stopping before a call of index 0…`commit`, with an empty answer, surely fails.

    `commit` is -1 where doing nothing passes: such a task has no place in an experiment.
    """

    calls: list[dict[str, Any]]
    answer: str
    commit: int
    give_up: NotRequired[dict[str, Any]]
    """The action by which an agent declares that it failed, where there is one; after it the task is not passed."""
    detour: NotRequired[dict[str, Any]]
    """An action that changes nothing."""


class Observation(TypedDict):
    """What came of an action. `error` marks a tool that failed; that is the agent's to deal with."""

    content: str
    error: bool
    done: NotRequired[bool]
    """Whether the agent has by now declared that it is done."""
    calls: NotRequired[list[dict[str, Any]]]
    """The API calls (`name`, `arguments`) that a block of code made, in order."""


class Verdict(TypedDict):
    """`passed` is None if the benchmark cannot tell, which makes the trial invalid."""

    passed: bool | None
    detail: dict[str, Any]


class Benchmark(Protocol):
    """One benchmark, ready for use. It keeps the one world that is open between calls."""

    def describe(self) -> Manifest: ...

    def open(self, task: str, run: int) -> None:
        """Begins a fresh world of this task. Raises BadInput for an unknown task."""

    def act(self, action: Mapping[str, Any]) -> Observation: ...

    def judge(self, answer: str) -> Verdict: ...

    def close(self) -> None:
        """Lets go of the world."""

    def solution(self, task: str) -> Solution | None: ...


@runtime_checkable
class WarmedBenchmark(Protocol):
    """One whose worlds need much that its manifest and its solutions do not: that is loaded when a world is wanted."""

    def warm(self) -> None:
        """Loads what worlds share. Called once, before a member that opens or judges one is forked."""


class CodeBenchmark(Protocol):
    """One whose worlds run code written by a model.

    The member that opens a world is confined first and serves no other. It keeps what was done in the trial's folder;
    a fresh member, in which no such code ran, judges what was kept: so code cannot reach the verdict otherwise.
    """

    def describe(self) -> Manifest: ...

    def needs(self, task: str, folder: str, *, judging: bool) -> Needs:
        """What a member may use from here on, to open and act, or to judge. Raises BadInput for an unknown task."""

    def open(self, task: str, run: int, folder: str) -> None:
        """Begins a fresh world of this task. Runs confined."""

    def act(self, action: Mapping[str, Any]) -> Observation:
        """Raises WorldBroke if it was not the action's fault that it failed."""

    def judge(self, task: str, folder: str, answer: str) -> Verdict:
        """The verdict on what a world kept in the folder. Runs confined, where no world was opened."""

    def close(self) -> None: ...

    def solution(self, task: str) -> Solution | None: ...
