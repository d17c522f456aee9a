"""Which task gets which rules. A selection is a function of the rules, the task list and, for some, `n`."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, get_args

from xspec.errors import SpecError
from xspec.guides.rule import Rule
from xspec.guides.similarity import LexicalIndex

Selection = Literal["all", "own-task", "same-scenario", "exclude-own-scenario", "top-n"]
SELECTIONS: tuple[str, ...] = get_args(Selection)
Assign = dict[str, list[int]]
Tasks = Sequence[Mapping[str, Any]]
"""Rows of the manifest: `id`, `cluster` and `instruction` are read."""


def assign_rules(rules: Sequence[Rule], tasks: Tasks, selection: Selection, n: int | None) -> Assign | None:
    """Task id → indices of its rules, without the tasks that get none; None means that every task gets all.

    Over all tasks of the manifest, not only the chosen ones: so the guide of a small first run is that of the
    whole. Raises SpecError if `n` and the selection don't belong together.
    """
    if n is None and selection == "top-n":
        raise SpecError("guide.selection=top-n wants a number of rules for each task: guide.n=3")
    if n is not None and selection != "top-n":
        raise SpecError(f"guide.n={n} belongs to guide.selection=top-n, and the selection is {selection}")
    if selection == "all":
        return None
    chosen = _CHOOSERS[selection](rules, tasks, n or 0)
    return {task: indices for task, indices in chosen.items() if indices}


def _own_task(rules: Sequence[Rule], tasks: Tasks, n: int) -> Assign:
    by_task: dict[str, list[int]] = defaultdict(list)
    for i, rule in enumerate(rules):
        for task in rule.source_tasks:
            by_task[task].append(i)
    return {row["id"]: by_task[row["id"]] for row in tasks}


def _same_scenario(rules: Sequence[Rule], tasks: Tasks, n: int) -> Assign:
    """Rules of other tasks of the scenario: none that the task itself had a part in."""
    cluster_of = {row["id"]: row["cluster"] for row in tasks}
    by_cluster: dict[str, list[int]] = defaultdict(list)
    for i, rule in enumerate(rules):
        for cluster in {cluster_of[task] for task in rule.source_tasks if task in cluster_of}:
            by_cluster[cluster].append(i)
    return {
        row["id"]: [i for i in by_cluster[row["cluster"]] if row["id"] not in rules[i].source_tasks]
        for row in tasks
    }


def _exclude_own_scenario(rules: Sequence[Rule], tasks: Tasks, n: int) -> Assign:
    """Rules that no task of the scenario had a part in. One that names no source can't be known to be such."""
    members: dict[str, set[str]] = defaultdict(set)
    for row in tasks:
        members[row["cluster"]].add(row["id"])
    return {
        row["id"]: [
            i
            for i, rule in enumerate(rules)
            if rule.source_tasks and members[row["cluster"]].isdisjoint(rule.source_tasks)
        ]
        for row in tasks
    }


def _top_n(rules: Sequence[Rule], tasks: Tasks, n: int) -> Assign:
    """Core rules, then the `n` others whose source instruction or trigger and content are most like the instruction.

    Similarity is that of xspec.guides.similarity; equal ones go by place, and one of 0 is not given.
    """
    instructions = {row["id"]: row["instruction"] for row in tasks}
    core = [i for i, rule in enumerate(rules) if rule.core]
    others = [i for i, rule in enumerate(rules) if not rule.core]
    index = LexicalIndex([_about(rules[i], instructions) for i in others])
    found = {}
    for row in tasks:
        likeness = index.similarities(row["instruction"])
        best = sorted(range(len(others)), key=lambda place: (-round(likeness[place], 9), place))[:n]
        found[row["id"]] = core + sorted(others[place] for place in best if likeness[place] > 0)
    return found


def _about(rule: Rule, instructions: Mapping[str, str]) -> str:
    """What a rule is compared by: where it comes from, when it applies, what it says."""
    sources = [instructions[task] for task in rule.source_tasks if task in instructions]
    return " ".join((rule.source_instruction or "", *sources, rule.trigger, rule.content))


_CHOOSERS: dict[str, Callable[[Sequence[Rule], Tasks, int], Assign]] = {
    "own-task": _own_task,
    "same-scenario": _same_scenario,
    "exclude-own-scenario": _exclude_own_scenario,
    "top-n": _top_n,
}
