"""A guide as plain text or Markdown: list items if there are any, else paragraphs. Headings are left out."""

import re
from collections.abc import Sequence

from xspec.errors import SpecError
from xspec.guides.guide import Guide
from xspec.guides.rule import plain_rules

_ITEM = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+")


def read(text: str, path: str) -> Guide:
    """Raises SpecError if there is no rule in it."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    if any(_ITEM.match(line) for line in lines):
        rules = _items(lines)
    else:
        rules = [" ".join(block.split()) for block in "\n".join(lines).split("\n\n")]
    rules = [rule for rule in rules if rule]
    if not rules:
        raise SpecError(f"guide file {path} holds no rule; write one a line, each after a dash")
    return Guide(plain_rules(rules), "text")


def _items(lines: Sequence[str]) -> list[str]:
    """List items; an indented or plain line right after an item goes on with it."""
    rules: list[str] = []
    open_item = False
    for line in lines:
        if _ITEM.match(line):
            rules.append(_ITEM.sub("", line).strip())
            open_item = True
        elif not line.strip():
            open_item = False
        elif open_item:
            rules[-1] += " " + line.strip()
    return rules
