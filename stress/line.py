"""One line of the table: something that must hold, and what was seen."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Line:
    """`ok` says whether `seen` is as `expected`."""

    part: str
    what: str
    expected: str
    seen: str
    ok: bool


def equal(part: str, what: str, expected: Any, seen: Any) -> Line:
    """A line that holds if both are the same."""
    return Line(part, what, str(expected), str(seen), expected == seen)
