"""One rule of a guide: what the agent is told, and where it comes from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from xspec.errors import SpecError

Evidence = Literal["success", "failure", "both"]
NO_EMPTY_RULES = "a guide needs at least one rule and no empty ones; for no guide use guide=none"


@dataclass(frozen=True, slots=True)
class Rule:
    """`content`, `trigger` (when it applies) and `steps` (how) are what the agent reads; the rest says whence.

    `source_tasks` are the tasks whose trajectories it was made from, empty where nobody says; `source_instruction`
    is the text of such a task where its id is not known. `core` marks a rule that its maker gives to every task.
    `support` counts the guidelines merged into it, `evidence` says how the trajectories behind it ended.
    """

    content: str
    trigger: str = ""
    steps: tuple[str, ...] = ()
    category: str | None = None
    rationale: str | None = None
    support: int | None = None
    evidence: Evidence | None = None
    source_tasks: tuple[str, ...] = ()
    source_instruction: str | None = None
    core: bool = False

    def cleaned(self) -> "Rule":
        """With the spaces of what the agent reads made single ones. Raises SpecError for a rule without content."""
        content = _single_spaced(self.content)
        if not content:
            raise SpecError(NO_EMPTY_RULES)
        steps = tuple(step for step in map(_single_spaced, self.steps) if step)
        return replace(self, content=content, trigger=_single_spaced(self.trigger), steps=steps)

    def plain(self) -> dict[str, Any]:
        """What identity holds: the text that is shown, and the source tasks, without what is absent."""
        found: dict[str, Any] = {"content": self.content}
        if self.trigger:
            found["trigger"] = self.trigger
        if self.steps:
            found["steps"] = list(self.steps)
        if self.source_tasks:
            found["source_tasks"] = list(self.source_tasks)
        return found

    @property
    def text(self) -> str:
        """All that the agent reads of it, in one piece: for measuring and comparing."""
        return " ".join((self.content, self.trigger, *self.steps)).strip()


def plain_rules(contents: Sequence[str]) -> tuple[Rule, ...]:
    """Rules that are nothing but a text each."""
    return tuple(Rule(content) for content in contents)


def lines_of(rule: Mapping[str, Any]) -> list[str]:
    """The lines of a rule (in its plain form) in a system message."""
    lines = [f"- {rule['content']}"]
    if rule.get("trigger"):
        lines.append(f"  When: {rule['trigger']}")
    return lines + [f"  {number}. {step}" for number, step in enumerate(rule.get("steps", ()), start=1)]


def _single_spaced(text: str) -> str:
    return " ".join(text.split())
