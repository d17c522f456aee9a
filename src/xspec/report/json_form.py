"""The report as JSON: keys in a fixed order, no NaN, what can't be said is null, times are UTC text."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from xspec.analysis.consistency import Consistency
from xspec.report.gateway import gateway_data
from xspec.report.headline import headline
from xspec.report.held import held
from xspec.report.json_statistics import arm_statistics, comparisons, effects, intervals, invalid_shares
from xspec.report.model import SCHEMA, Arm, ExecutionFigures, Group, Report
from xspec.report.protection import is_protected, protection_notice
from xspec.report.published import REFERENCES, reference_data
from xspec.report.sentences import SIMULATED, sentences
from xspec.report.write import write_text


def report_data(report: Report) -> dict[str, Any]:
    """Plain data, keys in the order they are written."""
    return {
        "report_schema": SCHEMA,
        "simulated": report.simulated,
        "protected": any(is_protected(group) for group in report.groups),
        "notice": SIMULATED if report.simulated else None,
        "groups": [_group(group) for group in report.groups],
        "arms": [_arm(arm, group) for group in report.groups for arm in group.arms],
        "comparisons": [row for group in report.groups for row in comparisons(group)],
        "effects": [row for group in report.groups for row in effects(group)],
        "invalid_shares": [row for group in report.groups for row in invalid_shares(group)],
        "gateways": [gateway_data(found) for found in report.gateways],
        "published": [reference_data(row) for row in REFERENCES],
    }


def report_json(report: Report) -> str:
    """JSON text, indented, with a newline at the end. Equal reports give equal text."""
    return json.dumps(report_data(report), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def write_report_json(report: Report, path: Path) -> None:
    """Write the JSON to `path`, whole or not at all."""
    write_text(path, report_json(report))


def _group(group: Group) -> dict[str, Any]:
    return {
        "group": group.index,
        "benchmark": group.benchmark,
        "version": group.version,
        "split": group.split,
        "tasks": len(group.tasks),
        "k": group.k,
        "agent": group.agent,
        "models": list(group.models),
        "simulated": group.simulated,
        "protected": is_protected(group),
        "protection": protection_notice(group),
        "spec_ids": [arm.spec_id for arm in group.arms],
        "headline": [sentence.text for sentence in headline(group)],
        "remarks": [
            {"text": one.text, "warning": one.warning, "command": one.command} for one in sentences(group)
        ],
        "differences": [
            {"a_spec_id": a, "b_spec_id": b, "fields": [str(diff) for diff in fields]}
            for a, b, fields in group.differences
        ],
    }


def _arm(arm: Arm, group: Group) -> dict[str, Any]:
    chosen = arm.chosen
    return {
        "arm": arm.label,
        "spec_id": arm.spec_id,
        "condition_id": arm.condition_id,
        "group": group.index,
        "k": group.k,
        "tasks": len(group.tasks),
        **_figures(chosen.figures),
        "retry_count": chosen.retry_count,
        "total_tokens": chosen.total_tokens,
        "simulated": arm.simulated,
        **intervals(arm),
        "held": held(arm.record.spec),
        "guide": _guide(arm),
        **arm_statistics(arm),
        "executions": [_execution(execution) for execution in arm.executions],
    }


def _guide(arm: Arm) -> dict[str, Any] | None:
    scope, guide = arm.scope, arm.record.spec.guide
    if scope is None or guide.kind == "none":
        return None
    return {
        "digest": guide.digest,
        "rules": scope.rules,
        "scope": scope.label,
        "tasks_by_scope": dict(scope.counts),
    }


def _execution(execution: ExecutionFigures) -> dict[str, Any]:
    figures = execution.figures
    bounds = figures.gap_pp_bounds or (None, None)
    return {
        "execution_id": execution.execution_id,
        "chosen": execution.chosen,
        "finished": execution.finished,
        "started_at": _utc(execution.started_at),
        "ended_at": _utc(execution.ended_at),
        **_figures(figures),
        "mean_at_k_pct_invalid_as_fail": figures.mean_at_k_pct_invalid_as_fail,
        "pass_hat_k_pct_invalid_as_fail": figures.pass_hat_k_pct_invalid_as_fail,
        "gap_pp_lowest": bounds[0],
        "gap_pp_highest": bounds[1],
        "disagreement_pct": figures.disagreement_pct,
        "run_pct": list(figures.run_pct),
        "incomplete_tasks": list(execution.incomplete_tasks),
        "invalid_causes": dict(execution.invalid_causes),
        "retry_count": execution.retry_count,
        "total_tokens": execution.total_tokens,
        "superseded": execution.superseded,
        "abandoned_attempts": execution.abandoned_attempts,
        "continue_with": execution.continue_with,
        "lock_changes": list(execution.lock_changes),
        "with_drift": None if execution.with_drift is None else _figures(execution.with_drift),
        "replayed": None
        if execution.replayed is None
        else {"identical": execution.replayed[0], "trials": execution.replayed[1]},
        "verification": [
            {"member": one.member, "kind": one.kind, "state": one.state, "why": one.why}
            for one in execution.verifications
        ],
    }


def _figures(figures: Consistency) -> dict[str, Any]:
    trials = figures.trials
    return {
        "tasks_complete": len(figures.complete),
        "trials": {
            "pass": trials.passed,
            "fail": trials.failed,
            "invalid": trials.invalid,
            "missing": trials.missing,
        },
        "mean_at_k_pct": figures.mean_at_k_pct,
        "pass_hat_k_pct": figures.pass_hat_k_pct,
        "pass_at_k_pct": figures.pass_at_k_pct,
        "gap_pp": figures.gap_pp,
        "gap_pp_invalid_as_fail": figures.gap_pp_invalid_as_fail,
        "best_run_pct": figures.best_run_pct,
        "worst_run_pct": figures.worst_run_pct,
        "flip_rate_pct": figures.flip_rate_pct,
    }


def _utc(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
