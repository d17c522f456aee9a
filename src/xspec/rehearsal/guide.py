"""Which decision points the guide in a system prompt covers."""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

HEADING = "## Guidelines"
_WORD = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class Coverage:
    """`guided` says whether there is a guide; `named` are the tools or APIs its rules name."""

    guided: bool
    named: frozenset[str] = frozenset()

    def covers(self, due: frozenset[str]) -> bool:
        """Whether the guide covers a point at which these tools or APIs are due (none: the answer is due).

        A guide that names no tool at all is general and covers every point.
        """
        return self.guided and (not self.named or not self.named.isdisjoint(due))


UNGUIDED = Coverage(False)


@lru_cache(maxsize=1024)
def coverage_of(system: str, tools: Collection[str]) -> Coverage:
    """The coverage of the guide in the system text, where there are these `tools` (or APIs) to be named.

    The guide is the lines `- rule` after the last line "## Guidelines"; without a rule there is no guide.
    """
    _, heading, after = f"\n{system}".rpartition(f"\n{HEADING}\n")
    rules = [line[2:] for line in after.splitlines() if line.startswith("- ")] if heading else []
    words = frozenset(word for rule in rules for word in _WORD.findall(rule))
    return Coverage(bool(rules), words.intersection(tools))


def system_text(messages: Iterable[Any]) -> str:
    """The text of the system messages of a request, joined by newlines."""
    return "\n".join(
        text_of(message)
        for message in messages
        if isinstance(message, dict) and message.get("role") in ("system", "developer")
    )


def text_of(message: dict[str, Any]) -> str:
    """The text of a message, whose content is a string or a list of parts; "" if it has none."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return "".join(text for text in texts if isinstance(text, str))
