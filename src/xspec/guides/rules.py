"""A guide: rules, and which task gets which of them. Its blob is identity, so both are in it."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from xspec.errors import SpecError
from xspec.spec.canonical import canonical_bytes
from xspec.spec.user_file import read_user_file

HEADING = "## Guidelines"
EVERY_TASK = "*"
MAX_BYTES = 200_000
_ITEM = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+")


def guide_blob(rules: Sequence[str], assign: Mapping[str, Sequence[int]] | None = None) -> bytes:
    """Canonical bytes of a guide. `assign` maps a task id (or `*`, every task) to indices into `rules`."""
    cleaned = [" ".join(rule.split()) for rule in rules]
    if not cleaned or not all(cleaned):
        raise SpecError("a guide needs at least one rule and no empty ones; for no guide use guide=none")
    plan = (
        {EVERY_TASK: list(range(len(cleaned)))} if assign is None else {t: list(i) for t, i in assign.items()}
    )
    return canonical_bytes({"rules": [{"content": rule} for rule in cleaned], "assign": plan})


def rules_for(guide: Mapping[str, Any] | None, task: str) -> list[str]:
    """The rules this task gets, in order."""
    if guide is None:
        return []
    indices = guide["assign"].get(task, guide["assign"].get(EVERY_TASK, []))
    return [guide["rules"][i]["content"] for i in indices]


def system_text(prompt: str, guide: Mapping[str, Any] | None, task: str) -> str:
    """The system message of a trial: the agent's prompt, then the task's rules as a list."""
    rules = rules_for(guide, task)
    if not rules:
        return prompt
    return "\n".join([prompt.rstrip("\n"), "", HEADING, *(f"- {rule}" for rule in rules)])


def read_rules(path: str) -> list[str]:
    """Rules of a text or Markdown file: its list items if it has any, else its paragraphs. Headings are left out."""
    data = read_user_file(path, MAX_BYTES, "guide file")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise SpecError(f"guide file {path} is not UTF-8 (byte {error.start})") from None
    if "\0" in text:
        raise SpecError(f"guide file {path} holds a NUL character; it should be a text file")
    if text.lstrip().startswith(("{", "[{", '["')):
        raise SpecError(f"guide file {path} looks like JSON; write one rule a line, each after a dash")
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    if any(_ITEM.match(line) for line in lines):
        rules = _items(lines)
    else:
        rules = [" ".join(block.split()) for block in "\n".join(lines).split("\n\n")]
    rules = [rule for rule in rules if rule]
    if not rules:
        raise SpecError(f"guide file {path} holds no rule; write one a line, each after a dash")
    return rules


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
