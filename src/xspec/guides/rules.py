"""A guide in a spec: rules, and which task gets which of them. Its blob is identity, so both are in it."""

from collections.abc import Mapping, Sequence
from typing import Any

from xspec.errors import SpecError
from xspec.guides.rule import NO_EMPTY_RULES, Rule, lines_of
from xspec.spec.canonical import canonical_bytes

HEADING = "## Guidelines"
EVERY_TASK = "*"


def guide_blob(rules: Sequence[Rule], assign: Mapping[str, Sequence[int]] | None = None) -> bytes:
    """Canonical bytes of a guide. `assign` maps a task id (or `*`, every task) to indices into `rules`.

    Raises SpecError for a guide without rules, or with an empty one.
    """
    if not rules:
        raise SpecError(NO_EMPTY_RULES)
    cleaned = [rule.cleaned() for rule in rules]
    plan = (
        {EVERY_TASK: list(range(len(cleaned)))} if assign is None else {t: list(i) for t, i in assign.items()}
    )
    return canonical_bytes({"rules": [rule.plain() for rule in cleaned], "assign": plan})


def rules_for(guide: Mapping[str, Any] | None, task: str) -> list[dict[str, Any]]:
    """The rules this task gets, in order, in their plain form."""
    if guide is None:
        return []
    indices = guide["assign"].get(task, guide["assign"].get(EVERY_TASK, []))
    return [guide["rules"][i] for i in indices]


def system_text(prompt: str, guide: Mapping[str, Any] | None, task: str) -> str:
    """The system message of a trial: the agent's prompt, then the task's rules as a list."""
    rules = rules_for(guide, task)
    if not rules:
        return prompt
    return "\n".join([prompt.rstrip("\n"), "", HEADING, *(line for rule in rules for line in lines_of(rule))])
