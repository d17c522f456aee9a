"""A guide's source tasks as a benchmark sees them: one that it does not have is no source.

Otherwise a slip of the pen, or a claim, would make rules from the very tasks look as if they came from elsewhere.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from xspec.benchmarks import BENCHMARKS
from xspec.errors import SpecError
from xspec.experiment.manifest import task_manifest
from xspec.guides.guide import Guide
from xspec.guides.rule import Rule
from xspec.guides.scope import FOREIGN
from xspec.spec.config import BenchmarkConfig
from xspec.spec.store import Store

Unknown = dict[int, tuple[str, ...]]
"""Rule (by its place) → the source tasks that it names and that there are none of."""


async def at_home(
    guide: Guide, benchmark: BenchmarkConfig, manifest: Mapping[str, Any], store: Store
) -> tuple[list[Rule], Unknown]:
    """The rules with the source tasks that count, and those that do not.

    Source tasks of a guide for another benchmark, as its provenance says, are marked as that one's: they can be none
    of this one's. All others must be tasks of this benchmark, in whichever split.
    """
    if guide.benchmark not in (None, benchmark.kind):
        foreign = f"{guide.benchmark}{FOREIGN}"
        return [
            _with_sources(rule, [foreign + task for task in rule.source_tasks]) for rule in guide.rules
        ], {}
    named = {task for rule in guide.rules for task in rule.source_tasks}
    strange = await _strange(named, benchmark, manifest, store)
    rules = [_with_sources(rule, [t for t in rule.source_tasks if t not in strange]) for rule in guide.rules]
    left_out = [tuple(t for t in rule.source_tasks if t in strange) for rule in guide.rules]
    return rules, {place: tasks for place, tasks in enumerate(left_out) if tasks}


def _with_sources(rule: Rule, tasks: list[str]) -> Rule:
    return replace(rule, source_tasks=tuple(tasks))


async def _strange(
    named: set[str], benchmark: BenchmarkConfig, manifest: Mapping[str, Any], store: Store
) -> set[str]:
    """Those of the tasks that no split of the benchmark has. Other splits are asked for only while some are left."""
    left = named - {row["id"] for row in manifest["tasks"]}
    launch = BENCHMARKS.get(benchmark.kind)
    for split in launch.splits if launch is not None else ():
        if not left:
            break
        settings = {**(benchmark.settings or {}), **launch.unfiltered} if launch is not None else None
        whole = benchmark.model_copy(update={"split": split, "settings": settings or None})
        try:
            _, found = await task_manifest(whole, store)
        except SpecError:  # data of that split are not here, so none of its tasks can be known
            continue
        left -= {row["id"] for row in found["tasks"]}
    return left
