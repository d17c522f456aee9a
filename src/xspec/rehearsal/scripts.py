"""What the simulated model knows: each task's solution, and how far a conversation has played it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from xspec.rehearsal.code import Block, block_in, parses
from xspec.rehearsal.guide import text_of

READ_PREFIXES = ("check_", "find_", "get_", "list_", "read_", "search_", "show_", "view_")
"""Tools so named are taken to be reads, which may be repeated without changing a verdict."""


Made = tuple[str | None, str]
"""What a message did: a tool's name with its arguments text, or None with a block of code."""


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
    def names(self) -> frozenset[str]:
        """The tool, as the guide may name it."""
        return frozenset((self.name,))

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

    Playing `calls` and answering `answer` passes. Giving up before any call of index <= `commit` fails for certain;
    -1 means that no such certainty exists. Giving up is to answer with nothing, or, where the calls are blocks of
    code, to run the block `give_up`. `detour` is a block that reads and changes nothing.
    """

    task: str
    instruction: str
    calls: tuple[Call, ...] | tuple[Block, ...]
    answer: str
    commit: int
    give_up: Block | None = None
    detour: Block | None = None

    @classmethod
    def of(cls, task: str, plain: Mapping[str, Any]) -> "TaskScript":
        """From plain data with `instruction`, `calls`, `answer`, `commit`, and of code `give_up` and perhaps `detour`.

        Raises KeyError, TypeError or ValueError if the data has another form.
        """
        given, commit = plain["calls"], int(plain["commit"])
        instruction, answer = _text(plain["instruction"]), _text(plain["answer"])
        if not any("code" in call for call in given):
            calls = tuple(Call.of(_text(call["name"]), dict(call["arguments"])) for call in given)
            return cls(task, instruction, calls, answer, commit)
        detour = Block.of(plain["detour"]) if plain.get("detour") else None
        blocks = tuple(Block.of(call) for call in given)
        return cls(task, instruction, blocks, answer, commit, Block.of(plain["give_up"]), detour)

    @property
    def by_code(self) -> bool:
        """Whether the task is acted in by blocks of code."""
        return self.give_up is not None

    @property
    def points(self) -> int:
        """How many decision points there are: call indices at which giving up fails for certain.

        A task without calls has one, its answer, if it has any.
        """
        return max(0, min(self.commit + 1, max(len(self.calls), 1)))

    def names_at(self, point: int) -> frozenset[str]:
        """The tools or APIs of the decision point; none where the answer is due."""
        return self.calls[point].names if point < len(self.calls) else frozenset()

    def detours_at(self, point: int) -> list[Call] | list[Block]:
        """What may be done before call `point` and changes nothing: earlier reads again, or the detour.

        The due call is never among them: repeating it would count as making it.
        """
        if point >= len(self.calls):
            return []
        due = self.calls[point]
        if isinstance(due, Block):
            return [self.detour] if self.detour is not None and self.detour.text != due.text else []
        found: list[Call] = []
        for call in self.calls[:point]:
            assert isinstance(call, Call)
            if call.reads and not due.same(call.name, call.arguments) and call not in found:
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
        for made in _blocks_made(message) if script.by_code else _calls_made(message):
            what = _compared(made, calls[done] if done < len(calls) else None)
            garbled = what == "garbled"
            if what == "due":
                done, detoured = done + 1, False
            elif what == "other":
                detoured = True
    return Progress(done, detoured, garbled, step)


def _compared(made: Made, due: Call | Block | None) -> Literal["due", "other", "garbled"]:
    """What was made, beside what was due."""
    name, text = made
    # The model's own words come back as they were sent: parse only what differs from them.
    if due is not None and (name, text) == (due.name, due.text):
        return "due"
    if name is None:
        return "other" if parses(text) else "garbled"
    arguments = _parsed(text)
    if arguments is None:
        return "garbled"
    return "due" if isinstance(due, Call) and due.same(name, arguments) else "other"


def _blocks_made(message: dict[str, Any]) -> list[Made]:
    code = block_in(text_of(message))
    return [] if code is None else [(None, code)]


def _calls_made(message: dict[str, Any]) -> list[Made]:
    made: list[Made] = []
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
