"""What gives a task's answer away: literal values of its known solution and of its verdicts, beyond its instruction."""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_QUOTED = re.compile(r"'([^'\n]{4,80})'|\"([^\"\n]{4,80})\"")
_TELLING = re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]+|\b\d[\d.,:/-]*\d{1,}\b")
_PLAIN_WORD = re.compile(r"[a-z_]+")
_NUMBER = re.compile(r"(\d+)(?:\.(\d+?)0*)?")
_WHOLE = re.compile(r"^(\d+)\.0+$")
"""A whole number that a solution has as a float; instructions and rules write it without the point."""
_MIN_CHARACTERS, _MAX_CHARACTERS = 4, 200


@dataclass(frozen=True, slots=True)
class Answers:
    """Literal value → where it stands, without what the task's own instruction says."""

    values: Mapping[str, str]


def answers_of(instruction: str, solution: Mapping[str, Any] | None, verdicts: list[Any]) -> Answers:
    """From a known solution (see xspec.benchmarks.protocol) and the details of stored verdicts."""
    found: dict[str, str] = {}
    told = instruction.casefold()
    for value, origin in _all(solution or {}, verdicts):
        text = _WHOLE.sub(r"\1", value.strip())
        if _telling(text) and text.casefold() not in told:
            found.setdefault(text, origin)
    return Answers(found)


def leaks_in(text: str, answers: Answers) -> Iterator[tuple[str, str]]:
    """(value, where it stands) for each value that the text holds as a whole word."""
    low = text.casefold()
    for value, origin in answers.values.items():
        number = _NUMBER.fullmatch(value)
        if number is None:
            found = value.casefold() in low and re.search(
                rf"(?<!\w){re.escape(value)}(?!\w)", text, re.IGNORECASE
            )
        else:  # 98.7 is written 98.70 too
            zeros = rf"\.{number[2]}0*" if number[2] else r"(?:\.0+)?"
            found = number[1] in low and re.search(rf"(?<!\w){number[1]}{zeros}(?!\w|\.\d)", text)
        if found:
            yield value, origin


def _all(solution: Mapping[str, Any], verdicts: list[Any]) -> Iterator[tuple[str, str]]:
    for call in solution.get("calls", ()):
        if "code" in call:
            yield from ((value, "in the solution's code") for value in _literals(call["code"]))
        else:
            origin = f"an argument of {call.get('name')} in the solution"
            yield from ((value, origin) for value in _leaves(call.get("arguments")))
    answer = str(solution.get("answer") or "")
    if len(answer) <= 40:
        yield answer, "the answer"
    yield from ((value, "in the answer") for value in _inside(answer))
    for verdict in verdicts:
        for text in _leaves(verdict):
            yield from ((value, "in a verdict") for value in _inside(text))


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield str(value)


def _literals(code: str) -> Iterator[str]:
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            yield from _leaves(node.value)


def _inside(text: str) -> Iterator[str]:
    for match in _QUOTED.finditer(text):
        yield match[1] or match[2]
    for match in _TELLING.finditer(text):
        yield match[0]


def _telling(value: str) -> bool:
    """Whether it is a value that a rule could hardly hold by chance: not a plain word, not a small number."""
    if re.fullmatch(r"[\d.,]+", value):
        return sum(sign.isdigit() for sign in value) >= 3
    return _MIN_CHARACTERS <= len(value) <= _MAX_CHARACTERS and not _PLAIN_WORD.fullmatch(value)
