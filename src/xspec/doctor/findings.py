"""A finding: one line that says what was found, and what to do about it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "note", "problem"]

INDENT = 22
"""Where the text of a line begins."""


@dataclass(frozen=True, slots=True)
class Finding:
    """`matters` is true of a note that bears on what a measurement would mean: it makes the exit code 1."""

    level: Level
    about: str
    what: str
    do: str | None = None
    matters: bool = False

    def line(self, arrow: str = "\N{RIGHTWARDS ARROW}") -> str:
        """As it is printed. `note!` marks a note that matters."""
        level = "note!" if self.matters else self.level
        return f"{level:<8} {self.about:<12} {self.what}" + (f" {arrow} {self.do}" if self.do else "")


Say = Callable[[Finding], None]


def ok(about: str, what: str) -> Finding:
    return Finding("ok", about, what)


def note(about: str, what: str, do: str | None = None, *, matters: bool = False) -> Finding:
    return Finding("note", about, what, do, matters)


def problem(about: str, what: str, do: str | None = None) -> Finding:
    return Finding("problem", about, what, do)


def exit_code(findings: Iterable[Finding]) -> int:
    """0 all fine, 1 something that matters, 3 it cannot work."""
    found = list(findings)
    if any(finding.level == "problem" for finding in found):
        return 3
    return 1 if any(finding.matters for finding in found) else 0
