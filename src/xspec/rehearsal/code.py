"""Blocks of Python, where a task is acted in by code: how the simulated model writes them and reads them again."""

import ast
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

_FENCE = "```"
_OPENING = f"{_FENCE}python\n"
_API = re.compile(r"\bapis\s*\.\s*\w+\s*\.\s*(\w+)")


@dataclass(frozen=True, slots=True)
class Block:
    """One block of code of a solution. `names` are the APIs it uses, each by its own name without the app's."""

    text: str
    names: frozenset[str]
    name: ClassVar[None] = None

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> "Block":
        """From `{"code": text}`. Raises KeyError, TypeError or ValueError for what is no block of Python."""
        code = plain["code"]
        if not isinstance(code, str):
            raise TypeError(f"expected code, got {type(code).__name__}")
        code = code.strip("\n")
        if not code or _FENCE in code or not parses(code):
            raise ValueError("a block is empty, holds a fence or is no Python")
        return cls(code, frozenset(_API.findall(code)))


def as_reply(code: str) -> str:
    """The text of a reply that holds the code as its one block."""
    return f"{_OPENING}{code}\n{_FENCE}"


def block_in(reply: str) -> str | None:
    """The code of the first block of a reply; None if it has none."""
    _, opening, rest = reply.partition(_OPENING)
    return rest.partition(_FENCE)[0].strip("\n") if opening else None


def parses(code: str) -> bool:
    """Whether the code is Python: what does not parse is not run, no line of it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def cut_off(code: str, at: int) -> str:
    """The code as far as it arrived: its beginning of at least `at` characters, or else of fewer, that does not parse.

    A beginning that did parse would be run, and be something else than a fault that is seen at once.
    """
    lengths = [*range(at, len(code)), *range(at - 1, 0, -1)]
    return next((code[:length] for length in lengths if not parses(code[:length])), f"{code}(")
