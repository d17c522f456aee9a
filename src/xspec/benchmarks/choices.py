"""Choices: short requests to a home assistant, each fulfilled by one right tool call. Standard library only.

Made to be within reach of a very small model, and judged by comparing the calls made with the one that is right.
Strata: `plain` names tool and values as the tools do, `worded` says them in other words, `implied` leaves something
to conclude. A task is its own cluster.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from xspec.benchmarks.protocol import BadInput, Manifest, Observation, Solution, TaskEntry, Verdict

VERSION = "1"
STRATA = ("plain", "worded", "implied")

ROOMS = ("bedroom", "hall", "kitchen")
MUSIC = ("classical", "jazz", "rock")

Call = tuple[str, dict[str, Any]]


def _lamp(room: str, state: str) -> Call:
    return "set_lamp", {"room": room, "state": state}


def _timer(minutes: int) -> Call:
    return "set_timer", {"minutes": minutes}


def _buy(item: str) -> Call:
    return "add_to_list", {"item": item}


def _music(style: str) -> Call:
    return "play_music", {"style": style}


ITEMS: tuple[tuple[str, str, Call], ...] = (
    ("plain", "Set the lamp in the kitchen on.", _lamp("kitchen", "on")),
    ("plain", "Set the lamp in the bedroom off.", _lamp("bedroom", "off")),
    ("plain", "Set the lamp in the hall on.", _lamp("hall", "on")),
    ("plain", "Set a timer for 5 minutes.", _timer(5)),
    ("plain", "Set a timer for 12 minutes.", _timer(12)),
    ("plain", "Add milk to the shopping list.", _buy("milk")),
    ("plain", "Add rice to the shopping list.", _buy("rice")),
    ("plain", "Play jazz music.", _music("jazz")),
    ("plain", "Play rock music.", _music("rock")),
    ("worded", "Please switch the hall light off.", _lamp("hall", "off")),
    ("worded", "I would like some light in the kitchen.", _lamp("kitchen", "on")),
    ("worded", "Give me a signal in 20 minutes.", _timer(20)),
    ("worded", "Tell me when 3 minutes are over.", _timer(3)),
    ("worded", "Note that we must buy eggs.", _buy("eggs")),
    ("worded", "Write down bread, I will go shopping later.", _buy("bread")),
    ("worded", "I want to hear something classical.", _music("classical")),
    ("worded", "Put on a rock song.", _music("rock")),
    ("implied", "I am in bed and want to sleep, make it dark here.", _lamp("bedroom", "off")),
    ("implied", "I cannot see the pots and the stove.", _lamp("kitchen", "on")),
    ("implied", "The tea must steep for as many minutes as a hand has fingers.", _timer(5)),
    ("implied", "Wake me from my nap in half an hour.", _timer(30)),
    ("implied", "We have run out of sugar.", _buy("sugar")),
    ("implied", "There is no more soap in the house.", _buy("soap")),
    ("implied", "A symphony of Mozart would be nice now.", _music("classical")),
)


def make(version: str, split: str, settings: Mapping[str, Any]) -> "Choices":
    """`split` is `all` or a stratum. There are no settings of its own."""
    if version != VERSION:
        raise BadInput(f"choices has no version {version!r}; it has {VERSION}")
    if settings:
        raise BadInput(f"choices has no setting {min(settings)!r}")
    if split != "all" and split not in STRATA:
        raise BadInput(f"choices has no split {split!r}; it has all, {', '.join(STRATA)}")
    return Choices(split)


class Choices:
    """The requests of one split. A world is the list of calls made in it."""

    def __init__(self, split: str) -> None:
        self._split = split
        self._items: dict[str, tuple[str, str, Call]] = {}
        for stratum in STRATA:
            items = [item for item in ITEMS if item[0] == stratum]
            if split in ("all", stratum):
                self._items |= {f"{stratum}.{i}": item for i, item in enumerate(items)}
        self._due: Call | None = None
        self._made: list[Call] = []

    def describe(self) -> Manifest:
        return {
            "benchmark": "choices",
            "version": VERSION,
            "split": self._split,
            "package": {},
            "toolsets": {"home": TOOLS},
            "system": {},
            "tasks": [self._entry(task) for task in sorted(self._items, key=_natural)],
        }

    def open(self, task: str, run: int) -> None:
        self._due = self._item(task)[2]
        self._made = []

    def act(self, action: Mapping[str, Any]) -> Observation:
        name, arguments = action["name"], dict(action["arguments"])
        wrong = _wrong(name, arguments)
        if wrong is not None:
            return {"content": f"error: {wrong}", "error": True}
        self._made.append((name, arguments))
        return {"content": "done", "error": False}

    def judge(self, answer: str) -> Verdict:
        """Passes if the one right call was made and no other. The answer has no say."""
        assert self._due is not None
        made = [{"name": name, "arguments": arguments} for name, arguments in self._made]
        return {
            "passed": [_plain(call) for call in self._made] == [_plain(self._due)],
            "detail": {"made": made},
        }

    def close(self) -> None:
        self._due = None

    def solution(self, task: str) -> Solution:
        name, arguments = self._item(task)[2]
        return {"calls": [{"name": name, "arguments": dict(arguments)}], "answer": "Done.", "commit": 0}

    def _item(self, task: str) -> tuple[str, str, Call]:
        if task not in self._items:
            raise BadInput(f"choices has no task {task!r}; its tasks are named like {min(self._items)}")
        return self._items[task]

    def _entry(self, task: str) -> TaskEntry:
        stratum, instruction, due = self._items[task]
        return {
            "id": task,
            "cluster": task,
            "stratum": stratum,
            "difficulty": None,
            "instruction": instruction,
            "toolset": "home",
            "data": _digest([]),
            "solution": _digest(due),
        }


def _tool(name: str, description: str, properties: dict[str, Any]) -> dict[str, Any]:
    parameters = {
        "type": "object",
        "properties": properties,
        "required": sorted(properties),
        "additionalProperties": False,
    }
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": parameters},
    }


TOOLS = [
    _tool("add_to_list", "notes what to buy", {"item": {"type": "string", "minLength": 1, "maxLength": 20}}),
    _tool("play_music", "plays music", {"style": {"type": "string", "enum": list(MUSIC)}}),
    _tool(
        "set_lamp",
        "switches a light",
        {
            "room": {"type": "string", "enum": list(ROOMS)},
            "state": {"type": "string", "enum": ["off", "on"]},
        },
    ),
    _tool("set_timer", "rings later", {"minutes": {"type": "integer", "minimum": 1, "maximum": 99}}),
]
_PROPERTIES: dict[str, dict[str, Any]] = {
    tool["function"]["name"]: tool["function"]["parameters"]["properties"] for tool in TOOLS
}


def _wrong(name: str, arguments: Mapping[str, Any]) -> str | None:
    """What is wrong with a call, in one sentence; None if the tool takes it."""
    properties = _PROPERTIES.get(name)
    if properties is None:
        return f"there is no tool {name!r}"
    if arguments.keys() != properties.keys():
        return f"{name} takes {', '.join(sorted(properties))}"
    for key, schema in properties.items():
        value = arguments[key]
        if "enum" in schema and value not in schema["enum"]:
            return f"{key} is one of {', '.join(schema['enum'])}"
        if schema["type"] == "string" and not (isinstance(value, str) and value.strip()):
            return f"{key} is a text"
        if schema["type"] == "integer" and (type(value) is not int or value < 1):
            return f"{key} is a whole number, at least 1"
    return None


def _plain(call: Call) -> Call:
    """A call without what nobody means to distinguish: case and white space around a text."""
    name, arguments = call
    return name, {k: v.strip().casefold() if isinstance(v, str) else v for k, v in arguments.items()}


def _natural(task: str) -> tuple[int, int]:
    stratum, _, number = task.partition(".")
    return STRATA.index(stratum), int(number)


def _digest(value: Any) -> str:
    data = json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
    return "sha256:" + hashlib.sha256(data).hexdigest()
