"""A sentence of the report, and how it counts and lists."""

from collections.abc import Sequence
from dataclasses import dataclass

from xspec.counted import counted

_NAMED = 3


@dataclass(frozen=True, slots=True)
class Sentence:
    """`warning` marks what should make the reader pause; `command` is what to type, on its own line."""

    text: str
    warning: bool = False
    command: str | None = None


def some(items: Sequence[str], noun: str = "task", separator: str = ", ") -> str:
    """The first three, and how many more."""
    more = len(items) - _NAMED
    return separator.join(items[:_NAMED]) + (f" and {counted(more, f'more {noun}')}" if more > 0 else "")
