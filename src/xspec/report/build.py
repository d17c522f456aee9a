"""From stored executions to a report: one arm a spec, arms in groups that may be compared."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from xspec.analysis.consistency import consistency
from xspec.errors import StoreError
from xspec.report.analyse import analyse_arm, analyse_group
from xspec.report.execution_record import DRIFT, ExecutionRecord, chosen_of
from xspec.report.gateway import GatewayFigures
from xspec.report.guide_scope import scope_of
from xspec.report.model import Arm, ExecutionFigures, Group, Report
from xspec.spec.diff import comparable
from xspec.spec.models import ExperimentSpec

_AGAIN = 3
"""Other executions of a spec that are compared with the chosen one, the newest."""


def build_report(
    records: Sequence[ExecutionRecord],
    *,
    allow_differences: bool = False,
    margin_pp: float | None = None,
    gateways: Sequence[GatewayFigures] = (),
) -> Report:
    """Group executions by spec, specs by comparison. The order of `records` makes no difference.

    With `allow_differences` all specs that have k and tasks in common are one group, whatever else they differ in,
    and the group lists it. `margin_pp` is the equivalence margin that "no change" is claimed against. `gateways` are
    taken into the report as they are.

    Raises StoreError when an execution stands twice among the records, or its trials don't fit its spec.
    """
    by_spec: dict[str, list[ExecutionRecord]] = defaultdict(list)
    seen: set[str] = set()
    for record in sorted(records, key=lambda r: (r.started_at, r.execution_id)):
        if record.execution_id in seen:
            raise StoreError(f"execution {record.execution_id} stands twice in the store")
        seen.add(record.execution_id)
        by_spec[record.spec_id].append(record)

    groups: list[list[list[ExecutionRecord]]] = []
    for executions in sorted(by_spec.values(), key=_place):
        spec = executions[0].spec
        # Sharing a member is not transitive (a, a+b, b): a spec has to fit every arm of its group.
        home = next(
            (g for g in groups if all(_fits(spec, other[0].spec, allow_differences) for other in g)), None
        )
        if home is None:
            groups.append([executions])
        else:
            home.append(executions)
    groups.sort(key=lambda g: (min(e[0].started_at for e in g), g[0][0].spec_id))
    return Report(tuple(_group(i, members, margin_pp) for i, members in enumerate(groups)), tuple(gateways))


def _fits(spec: ExperimentSpec, other: ExperimentSpec, allow_differences: bool) -> bool:
    if not allow_differences:
        return not comparable(spec, other)
    return (
        spec.k == other.k
        and spec.benchmark.kind == other.benchmark.kind
        and (spec.benchmark.tasks == other.benchmark.tasks)
    )


def levels(spec: ExperimentSpec) -> str:
    """The levels of a spec's factors, for an arm without a name: `guide=none route=fixed`."""
    return f"guide={spec.guide.kind} route={spec.route.mode}"


def _place(executions: Sequence[ExecutionRecord]) -> tuple[bool, bool, str, str]:
    """Unguided before guided, fixed before floating: start times would shuffle the arms of a sweep."""
    first = executions[0]
    spec = first.spec
    return spec.guide.kind != "none", spec.route.mode != "fixed", _label(executions), first.spec_id


def _label(executions: Sequence[ExecutionRecord]) -> str:
    """The name it was last called by."""
    named = [record.arm for record in executions if record.arm]
    return named[-1] if named else levels(executions[0].spec)


def _group(index: int, members: Sequence[Sequence[ExecutionRecord]], margin_pp: float | None) -> Group:
    spec = members[0][0].spec
    models = {m.model: None for executions in members for m in executions[0].spec.route.members}
    arms = tuple(_arm(index, executions) for executions in members)
    differences = [
        (a.spec_id, b.spec_id, tuple(comparable(a.record.spec, b.record.spec)))
        for a, b in combinations(arms, 2)
    ]
    return Group(
        index=index,
        benchmark=spec.benchmark.kind,
        version=spec.benchmark.version,
        split=spec.benchmark.split,
        tasks=spec.benchmark.tasks,
        k=spec.k,
        agent=spec.agent.kind,
        models=tuple(models),
        arms=arms,
        statistics=analyse_group({arm.spec_id: arm.record for arm in arms}, margin_pp),
        differences=tuple(entry for entry in differences if entry[2]),
    )


def _arm(group: int, executions: Sequence[ExecutionRecord]) -> Arm:
    spec = executions[0].spec
    figures = [_figures(record) for record in executions]
    chosen = chosen_of(executions)
    return Arm(
        label=_label(executions),
        spec_id=executions[0].spec_id,
        condition_id=executions[0].condition_id,
        group=group,
        guided=spec.guide.kind != "none",
        scope=scope_of(executions[chosen]),
        mode=spec.route.mode,
        simulated=any(member.kind == "rehearsal" for member in spec.route.members),
        executions=tuple(replace(f, chosen=i == chosen) for i, f in enumerate(figures)),
        record=executions[chosen],
        statistics=analyse_arm(
            executions[chosen],
            [r for i, r in enumerate(executions) if i != chosen and figures[i].finished][-_AGAIN:],
        ),
    )


def _figures(record: ExecutionRecord) -> ExecutionFigures:
    figures = consistency(record.outcomes(), record.spec.k)
    causes = Counter(trial.cause or "unknown" for trial in record.trials if trial.outcome == "invalid")
    tasks = record.spec.benchmark.tasks
    return ExecutionFigures(
        execution_id=record.execution_id,
        chosen=False,
        started_at=min((trial.started_at for trial in record.trials), default=record.started_at),
        ended_at=max((trial.ended_at for trial in record.trials), default=record.ended_at),
        figures=figures,
        incomplete_tasks=tuple(tasks[i] for i in figures.incomplete),
        invalid_causes=tuple(sorted(causes.items(), key=lambda item: (-item[1], item[0]))),
        retry_count=sum(trial.retry_count for trial in record.trials),
        total_tokens=_tokens(record),
        superseded=record.superseded,
        abandoned_attempts=record.abandoned_attempts,
        continue_with=record.continue_with,
        lock_changes=tuple(record.lock_changes),
        lock_notes=tuple(record.lock_notes),
        replies=record.replies,
        uncounted=record.uncounted,
        with_drift=consistency(record.outcomes(drift_counts=True), record.spec.k) if causes[DRIFT] else None,
        verifications=tuple(record.verifications),
        replayed=record.replayed,
    )


def _tokens(record: ExecutionRecord) -> int | None:
    """Of all attempts; None if none of the replies said."""
    if record.tokens_unknown:
        return None
    in_trials = sum(trial.prompt_tokens + trial.completion_tokens for trial in record.trials)
    return record.tokens_outside_trials + in_trials
