"""What a report says of the guides of its arms: how near their rules are to the tasks, and which gaps that parts."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from xspec.counted import counted
from xspec.guides.scope import SCOPES, GuideScope, guide_scope
from xspec.report.execution_record import ExecutionRecord
from xspec.report.published import REFERENCES
from xspec.report.sentence import Sentence

if TYPE_CHECKING:
    from xspec.report.model import Arm, Group


def scope_of(record: ExecutionRecord) -> GuideScope | None:
    """The scope of the record's guide over its spec's tasks; None without a guide, or where its blob is lost."""
    if record.guide is None:
        return None
    clusters = {task: info["cluster"] for task, info in record.task_info.items() if info.get("cluster")}
    return guide_scope(record.guide, record.spec.benchmark.tasks, clusters)


def scope_mark(scope: GuideScope | None) -> str:
    """What stands behind an arm's name wherever it is shown: ` (same-task)`. A guide without sources has none."""
    if scope is None or scope.label in ("unsourced", "no rules"):
        return ""
    return f" ({scope.label})" if scope.label != "mixed" else " (mixed scopes)"


def scope_sentence(arm: "Arm", name: str) -> Iterator[Sentence]:
    """Counts of tasks by scope, for every guided arm."""
    scope = arm.scope
    if scope is None:
        return
    rules = counted(scope.rules, "rule")
    if scope.label == "unsourced":
        without = scope.counts.get("no rules", 0)
        rest = f"; {counted(without, 'task')} get none" if without else ""
        text = f"{name}: {rules} of which not all say which tasks they were made from: scope unknown{rest}."
    else:
        meaning = "; ".join(f"{label}: {SCOPES[label]}" for label in scope.counts if label != "no rules")
        text = f"{name}: {rules}, by scope {scope.text()} ({meaning})."
    yield Sentence(text)


def scopes_apart(group: "Group", names: Mapping[str, str]) -> Iterator[Sentence]:
    """A warning where a gap measured on the guide's own source tasks stands beside one of another scope."""
    scoped = [arm for arm in group.arms if arm.scope is not None and arm.scope.label != "no rules"]
    labels = {arm.scope.label for arm in scoped if arm.scope is not None}
    if len(labels) > 1 and labels & {"same-task", "mixed"}:
        listed = ", ".join(f"{names[a.spec_id]} {a.scope.label}" for a in scoped if a.scope is not None)
        yield Sentence(
            f"Guides of different scope stand side by side ({listed}): rules made from the very tasks that are "
            "rerun narrow a gap more easily than rules from elsewhere. Don't read one gap against the other.",
            warning=True,
        )
    same = next(r for r in REFERENCES if r.scope_label == "same-task")
    own = {r.scope_label: r for r in REFERENCES if r.scope_label is not None}
    for arm in scoped:
        label = arm.scope.label if arm.scope is not None else ""
        if label in ("same-task", "unsourced"):
            continue
        fitting = own.get(label)
        counterpart = (
            f"its counterpart is {fitting.gap_pp:g}" if fitting else "it has no published counterpart"
        )
        yield Sentence(
            f"{names[arm.spec_id]}: the published gap of {same.gap_pp:g} is same-task, this guide is {label}: "
            f"{counterpart}.",
            warning=True,
        )
