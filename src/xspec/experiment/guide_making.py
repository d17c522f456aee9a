"""From what the analyzer wrote to a guide file: equal rules merged, counted, traced to their tasks, and provenance."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from xspec.experiment.generate_guide import Analysed
from xspec.guides.guide_file import GuideFile, Provenance, RuleEntry, StepUncertainty
from xspec.guides.rule import Evidence, Rule
from xspec.records.executions import ExecutionFolder


@dataclass(frozen=True, slots=True)
class Spent:
    """What gateway executions carried. `calls` are the requests that came in, `attempts` those that went out."""

    calls: int
    attempts: int
    prompt_tokens: int
    completion_tokens: int


def spent_by(folders: Sequence[ExecutionFolder]) -> Spent:
    """Summed over the executions, failed attempts included."""
    counts: dict[str, int] = defaultdict(int)
    for folder in folders:
        for row in folder.rows("call", "attempt"):
            counts[row["kind"]] += 1
            if row["kind"] == "attempt":
                counts["prompt_tokens"] += row["prompt_tokens"] or 0
                counts["completion_tokens"] += row["completion_tokens"] or 0
    return Spent(counts["call"], counts["attempt"], counts["prompt_tokens"], counts["completion_tokens"])


def merged_rules(
    analysed: Sequence[Analysed], passed: Mapping[tuple[int, str], bool], most: int | None
) -> list[Rule]:
    """The rules of all trajectories, equal ones as one that names all their tasks.

    Of more than `most` those are kept whose trajectories had the most uncertain step; without uncertainty the first.
    """
    rules: dict[tuple[str, str, tuple[str, ...]], Rule] = {}
    outcomes: dict[Any, set[bool]] = defaultdict(set)
    peaks: dict[Any, float] = defaultdict(float)
    for one in analysed:
        peak = max((step["uncertainty"] for step in one.answer.get("steps", ())), default=0.0)
        for guideline in one.answer.get("guidelines", ()):
            rule = _rule(guideline, one.task)
            key = (rule.content, rule.trigger, rule.steps)
            peaks[key] = max(peaks[key], peak)
            outcomes[key].add(passed[one.run, one.task])
            if key in rules:
                earlier = rules[key]
                sources = tuple(dict.fromkeys((*earlier.source_tasks, one.task)))
                support = (earlier.support or 1) + (rule.support or 1)
                rules[key] = replace(earlier, source_tasks=sources, support=support)
            else:
                rules[key] = rule
    kept = sorted(rules, key=lambda key: -peaks[key])[:most]
    return [
        replace(rule, evidence=_evidence(outcomes[key])) for key, rule in rules.items() if key in set(kept)
    ]


def guide_file(rules: Sequence[Rule], analysed: Sequence[Analysed], **provenance: Any) -> GuideFile:
    """The file. `provenance` are the fields of Provenance but the uncertainty, which the analyzer's answers hold."""
    measured = tuple(
        StepUncertainty(run=one.run, task=one.task, **step)
        for one in analysed
        for step in one.answer.get("steps", ())
    )
    names = RuleEntry.model_fields
    entries = tuple(RuleEntry(**{name: getattr(rule, name) for name in names}) for rule in rules)
    return GuideFile(xspec_guide=1, rules=entries, provenance=Provenance(**provenance, uncertainty=measured))


def _rule(guideline: Mapping[str, Any], task: str) -> Rule:
    return Rule(
        content=guideline["content"],
        trigger=guideline.get("trigger") or "",
        steps=tuple(guideline.get("implementation_steps") or ()),
        category=guideline.get("category") or None,
        rationale=guideline.get("rationale") or None,
        support=guideline.get("support") or 1,
        source_tasks=(task,),
    ).cleaned()


def _evidence(passed: set[bool]) -> Evidence:
    return "both" if len(passed) > 1 else "success" if passed == {True} else "failure"
