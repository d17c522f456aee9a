"""How near a guide's rules are to the tasks that get them: computed from the map and the source tasks, never claimed.

A gap measured with rules made from the very task that is rerun says less than one with rules from elsewhere, so no
two are set side by side without their scopes.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from xspec.counted import counted
from xspec.guides.rules import rules_for

Scope = Literal["same-task", "similar-task", "transfer", "unsourced", "no rules"]
SCOPES: dict[Scope, str] = {
    "same-task": "rules made from the very task that is rerun",
    "similar-task": "rules made from other tasks of its scenario",
    "transfer": "rules made from tasks of other scenarios",
    "unsourced": "rules that do not all say which tasks they were made from",
    "no rules": "no rule",
}
"""The nearest first; a task is counted under the first that one of its rules makes true."""
FOREIGN = ":"
"""`kind:task` names a source task of another benchmark. All others are tasks of this one, in whichever split: a guide
becomes part of a spec without the sources that its benchmark does not have."""


@dataclass(frozen=True, slots=True)
class GuideScope:
    """Counts of tasks by scope, in the order of SCOPES and without zeros; `rules` is how many the guide has."""

    rules: int
    tasks: int
    counts: Mapping[Scope, int]

    @property
    def label(self) -> str:
        """The scope of all tasks that get a rule, or `mixed`."""
        scopes = [scope for scope in self.counts if scope != "no rules"]
        return scopes[0] if len(scopes) == 1 else "mixed" if scopes else "no rules"

    def text(self) -> str:
        """`same-task 88, no rules 4 of 92 tasks`."""
        parts = ", ".join(f"{scope} {count}" for scope, count in self.counts.items())
        return f"{parts} of {counted(self.tasks, 'task')}"


def guide_scope(guide: Mapping[str, Any], tasks: Sequence[str], clusters: Mapping[str, str]) -> GuideScope:
    """The scope over these tasks of a guide in its stored form. A task whose cluster isn't known is its own."""
    counts = Counter(task_scope(rules_for(guide, task), task, clusters) for task in tasks)
    ordered: dict[Scope, int] = {scope: counts[scope] for scope in SCOPES if counts[scope]}
    return GuideScope(len(guide["rules"]), len(tasks), ordered)


def task_scope(rules: Sequence[Mapping[str, Any]], task: str, clusters: Mapping[str, str]) -> Scope:
    """The nearest scope among a task's rules."""
    if not rules:
        return "no rules"
    sources = [set(rule.get("source_tasks", ())) for rule in rules]
    if any(task in named for named in sources):
        return "same-task"
    home = clusters.get(task, task)
    if any(clusters.get(source, source) == home for named in sources for source in named):
        return "similar-task"
    return "transfer" if all(sources) else "unsourced"
