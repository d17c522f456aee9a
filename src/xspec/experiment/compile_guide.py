"""The guide of a configuration, frozen: rules and the map task → rules, as a blob in the store."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from xspec.counted import counted
from xspec.errors import SpecError
from xspec.experiment.source_tasks import at_home
from xspec.guides.guide import Guide
from xspec.guides.read import read_guide
from xspec.guides.rule import Rule, plain_rules
from xspec.guides.rules import guide_blob, rules_for
from xspec.guides.selection import assign_rules
from xspec.spec.config import ExperimentConfig
from xspec.spec.models import ExperimentSpec
from xspec.spec.secrets import key_variables, scan_plain
from xspec.spec.store import Store

_NAMED = 5


async def guide_section(
    config: ExperimentConfig, store: Store, manifest: Mapping[str, Any], tasks: Sequence[str]
) -> tuple[dict[str, Any], list[str]]:
    """The spec's guide, and what a person should know of it.

    Raises UserError for a file that can't be read, or one that gives none of `tasks` a rule.
    """
    guide = config.guide
    if guide.kind == "none":
        return {"kind": "none"}, []
    if (guide.rules is None) == (guide.file is None):
        raise SpecError("a guide has either rules or a file; see conf/guide/")
    found = read_guide(guide.file) if guide.file else Guide(plain_rules(guide.rules or ()), "in place")
    rules, unknown = await at_home(found, config.benchmark, manifest, store)
    shown = [[rule.content, rule.trigger, list(rule.steps)] for rule in rules]
    scan_plain(shown, os.environ, "guide.rules", key_variables(config.provider.model_dump()))
    assign = assign_rules(rules, manifest["tasks"], guide.selection, guide.n)
    if assign is not None and not any(task in assign for task in tasks):
        raise SpecError(
            f"guide.selection={guide.selection} gives no rule to any of {counted(len(tasks), 'task')}: "
            f"{_why_none(rules, unknown, manifest, config.benchmark.kind)}"
        )
    section = {"kind": "rules", "digest": store.put_blob(guide_blob(rules, assign))}
    return section, _unknown_sources(unknown, len(rules), config.benchmark.kind)


def tasks_without_rules(spec: ExperimentSpec, store: Store) -> list[str]:
    """A warning that counts and names the tasks that a guided spec gives no rule."""
    if spec.guide.kind == "none":
        return []
    guide = store.json_blob(spec.guide.digest)
    without = [task for task in spec.benchmark.tasks if not rules_for(guide, task)]
    if not without:
        return []
    named = ", ".join(without[:_NAMED]) + (", …" if len(without) > _NAMED else "")
    return [
        f"the guide gives {len(without)} of {counted(len(spec.benchmark.tasks), 'task')} no rule: {named}"
    ]


def _unknown_sources(unknown: Mapping[int, Sequence[str]], rules: int, benchmark: str) -> list[str]:
    if not unknown:
        return []
    like = min(task for tasks in unknown.values() for task in tasks)
    return [
        f"{len(unknown)} of {counted(rules, 'rule')} of the guide name source tasks that {benchmark} does not have "
        f"(like {like}); those do not count, and a rule without others is unsourced"
    ]


def _why_none(
    rules: Sequence[Rule], unknown: Mapping[int, Sequence[str]], manifest: Mapping[str, Any], benchmark: str
) -> str:
    named = [rule.source_tasks for rule in rules]
    sources = {task for tasks in (*named, *unknown.values()) for task in tasks}
    if not sources:
        return "its rules name no source tasks; guide.selection=all or top-n needs none"
    known = {row["id"] for row in manifest["tasks"]}
    if not sources & known:
        return f"its source tasks (like {min(sources)}) are none of {benchmark}'s"
    return "no rule of it comes from where that selection looks"
