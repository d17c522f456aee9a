"""What the simulated model knows: each task's solution, and how far a conversation has played it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

READ_PREFIXES = ("check_", "find_", "get_", "list_", "read_", "search_", "show_", "view_")
"""Tools so named are taken to be reads, which may be repeated without changing a verdict."""


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call of a solution. `text` is its arguments as the model writes them."""

    name: str
    arguments: Mapping[str, Any]
    text: str

    @classmethod
    def of(cls, name: str, arguments: Mapping[str, Any]) -> "Call":
        """The call with its arguments written as compact JSON. Raises TypeError if they are not JSON data."""
        return cls(name, arguments, json.dumps(arguments, ensure_ascii=False, separators=(",", ":")))

    @property
    def reads(self) -> bool:
        """Whether the name looks like a read."""
        return self.name.startswith(READ_PREFIXES)

    def same(self, name: str, arguments: Mapping[str, Any]) -> bool:
        """Whether a call of `name` with `arguments` is this call, however it was spelt."""
        return name == self.name and arguments == self.arguments


@dataclass(frozen=True, slots=True)
class TaskScript:
    """A task and its known solution.

    Playing `calls` and answering `answer` passes. Answering with nothing before any call of index <= `commit`
    fails for certain; -1 means that no such certainty exists.
    """

    task: str
    instruction: str
    calls: tuple[Call, ...]
    answer: str
    commit: int

    @classmethod
    def of(cls, task: str, plain: Mapping[str, Any]) -> "TaskScript":
        """From plain data with `instruction`, `calls`, `answer`, `commit`.

        Raises KeyError, TypeError or ValueError if the data has another form.
        """
        calls = tuple(Call.of(_text(call["name"]), dict(call["arguments"])) for call in plain["calls"])
        commit = int(plain["commit"])
        return cls(task, _text(plain["instruction"]), calls, _text(plain["answer"]), commit)

    @property
    def points(self) -> int:
        """How many decision points there are: call indices at which giving up fails for certain.

        A task without calls has one, its answer, if it has any.
        """
        return max(0, min(self.commit + 1, max(len(self.calls), 1)))

    def tool_at(self, point: int) -> str | None:
        """The tool of the decision point; None where the answer is due."""
        return self.calls[point].name if point < len(self.calls) else None

    def detours_at(self, point: int) -> list[Call]:
        """Earlier reads that may be repeated before call `point`.

        The due call is never among them: repeating it would count as making it.
        """
        if point >= len(self.calls):
            return []
        found: list[Call] = []
        for call in self.calls[:point]:
            due = self.calls[point].same(call.name, call.arguments)
            if call.reads and not due and call not in found:
                found.append(call)
        return found


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a conversation is.

    `done` solution calls were made; `detoured` says that another call was made since the last of them;
    `garbled` that the last call made could not be parsed, so the last observation is an error; `step` is the
    number of assistant messages.
    """

    done: int
    detoured: bool
    garbled: bool
    step: int


def progress_of(script: TaskScript, messages: Sequence[Any]) -> Progress:
    """Read the progress off the messages of a request. Messages of an unknown form are passed over."""
    calls = script.calls
    done = step = 0
    detoured = garbled = False
    for message in messages:
        if not isinstance(message, dict) or message.get("role") != "assistant":
            continue
        step += 1
        garbled = False
        for name, text in _calls_made(message):
            due = calls[done] if done < len(calls) else None
            # The model's own words come back as they were sent: parse only what differs from the due call.
            spelt = due is not None and name == due.name and text == due.text
            arguments = due.arguments if due is not None and spelt else _parsed(text)
            garbled = arguments is None
            if arguments is None:
                continue
            made = due is not None and due.same(name, arguments)
            done, detoured = (done + 1, False) if made else (done, True)
    return Progress(done, detoured, garbled, step)


def _calls_made(message: dict[str, Any]) -> list[tuple[str, str]]:
    made = []
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            name, text = function.get("name"), function.get("arguments")
            if isinstance(name, str) and isinstance(text, str):
                made.append((name, text))
    return made


def _parsed(text: str) -> Mapping[str, Any] | None:
    try:
        arguments = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return arguments if isinstance(arguments, dict) else None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected text, got {type(value).__name__}")
    return value
