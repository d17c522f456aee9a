"""Reports that are made to be shown: without the texts of tasks and trials where a licence protects them.

Figures, ids, outcomes, causes and the names of what was called stay; instructions, arguments, code, replies,
observations and details go. It is done once, to the report itself, so that no form of it can forget a field.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from xspec.benchmarks.protected import left_out, protection_of
from xspec.records.rows import Trial
from xspec.report.execution_record import ExecutionRecord
from xspec.report.model import Arm, Group, Report
from xspec.report.steps import ExecutionSteps, StepRecord

PLACE = "(left out)"


def without_protected_texts(report: Report) -> Report:
    """The report with the texts of protected benchmarks left out, and said to be."""
    groups = tuple(_group(group) if is_protected(group) else group for group in report.groups)
    return replace(report, groups=groups)


def is_protected(group: Group) -> bool:
    """Whether the group's benchmark has texts that may not be passed on as they are."""
    return protection_of(group.benchmark) is not None


def protection_notice(group: Group) -> str | None:
    """What a reader has to know of protected texts; None if there are none."""
    reason = protection_of(group.benchmark)
    if reason is None:
        return None
    if group.texts_left_out:
        return f"Instructions, code, arguments and replies are {left_out(group.benchmark)}."
    return f"This holds protected texts. Do not make it public as it is: {reason}."


def _group(group: Group) -> Group:
    return replace(group, arms=tuple(_arm(arm) for arm in group.arms), texts_left_out=True)


def _arm(arm: Arm) -> Arm:
    failures = tuple(
        replace(cause, sample=tuple(map(_trial, cause.sample))) for cause in arm.statistics.failures
    )
    return replace(arm, record=_record(arm.record), statistics=replace(arm.statistics, failures=failures))


def _record(record: ExecutionRecord) -> ExecutionRecord:
    return replace(
        record,
        trials=[_trial(trial) for trial in record.trials],
        task_info={task: _info(info) for task, info in record.task_info.items()},
        steps=None if record.steps is None else _steps(record.steps),
    )


def _info(info: Mapping[str, Any]) -> dict[str, Any]:
    return {**info, "instruction": PLACE}


def _trial(trial: Trial) -> Trial:
    verdict: dict[str, Any] | None = None
    if trial.verdict is not None:
        verdict = {"passed": trial.verdict.get("passed"), "detail": {}}
    return replace(trial, verdict=verdict, detail=PLACE if trial.detail else None)


def _steps(steps: ExecutionSteps) -> ExecutionSteps:
    by_trial = {place: tuple(map(_step, of_trial)) for place, of_trial in steps.by_trial.items()}
    return replace(steps, by_trial=by_trial)


def _step(step: StepRecord) -> StepRecord:
    calls = tuple(call._replace(arguments="…") for call in step.taken.calls)
    return StepRecord(
        taken=replace(step.taken, calls=calls),
        asked=tuple(replace(one, text=PLACE, calls=()) for one in step.asked),
        said=PLACE if step.said else "",
        told=tuple(PLACE for _ in step.told),
    )
