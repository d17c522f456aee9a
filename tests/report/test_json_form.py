"""The JSON form: its keys, their order, and null where nothing can be said."""

import json
from pathlib import Path
from typing import Any

import pytest

from xspec.errors import UserError
from xspec.report.build import build_report
from xspec.report.json_form import report_data, report_json, write_report_json

ARM_KEYS = [
    "arm",
    "spec_id",
    "condition_id",
    "group",
    "k",
    "tasks",
    "tasks_complete",
    "trials",
    "mean_at_k_pct",
    "pass_hat_k_pct",
    "pass_at_k_pct",
    "gap_pp",
    "gap_pp_invalid_as_fail",
    "best_run_pct",
    "worst_run_pct",
    "flip_rate_pct",
    "retry_count",
    "total_tokens",
    "simulated",
    "mean_at_k_pct_ci95",
    "pass_hat_k_pct_ci95",
    "pass_at_k_pct_ci95",
    "gap_pp_ci95",
    "flip_rate_pct_ci95",
    "disagreement_pct_ci95",
    "held",
    "guide",
    "figures",
    "by_group",
    "goal_completion",
    "reconciliation",
    "failures",
    "runs",
    "outlier_runs",
    "run_noise",
    "executed_again",
    "divergence",
    "attribution",
    "drift_events",
    "executions",
]
GROUP_KEYS = [
    "group",
    "benchmark",
    "version",
    "split",
    "tasks",
    "k",
    "agent",
    "models",
    "simulated",
    "protected",
    "protection",
    "spec_ids",
    "headline",
    "remarks",
    "differences",
]
EXECUTION_KEYS = [
    "execution_id",
    "chosen",
    "finished",
    "started_at",
    "ended_at",
    "tasks_complete",
    "trials",
    "mean_at_k_pct",
    "pass_hat_k_pct",
    "pass_at_k_pct",
    "gap_pp",
    "gap_pp_invalid_as_fail",
    "best_run_pct",
    "worst_run_pct",
    "flip_rate_pct",
    "mean_at_k_pct_invalid_as_fail",
    "pass_hat_k_pct_invalid_as_fail",
    "gap_pp_lowest",
    "gap_pp_highest",
    "disagreement_pct",
    "run_pct",
    "incomplete_tasks",
    "invalid_causes",
    "retry_count",
    "total_tokens",
    "superseded",
    "abandoned_attempts",
    "continue_with",
    "lock_changes",
    "with_drift",
    "replayed",
    "verification",
]


def test_keys_are_exactly_these_in_this_order(make: Any) -> None:
    data = json.loads(report_json(build_report([make.record(make.spec(), ["++-", "+--"], arm="baseline")])))
    assert list(data) == [
        "report_schema",
        "simulated",
        "protected",
        "notice",
        "groups",
        "arms",
        "comparisons",
        "effects",
        "invalid_shares",
        "gateways",
        "published",
    ]
    assert data["report_schema"] == 2
    assert list(data["groups"][0]) == GROUP_KEYS
    (arm,) = data["arms"]
    assert list(arm) == ARM_KEYS
    assert list(arm["trials"]) == ["pass", "fail", "invalid", "missing"]
    assert list(arm["executions"][0]) == EXECUTION_KEYS


def test_values(make: Any) -> None:
    record = make.record(make.spec(), ["++-", "+-?"], arm="baseline")
    data = report_data(build_report([record]))
    (arm,) = data["arms"]
    assert data["groups"][0]["spec_ids"] == [record.spec_id]
    assert (arm["arm"], arm["spec_id"], arm["condition_id"]) == (
        "baseline",
        record.spec_id,
        record.condition_id,
    )
    assert (arm["k"], arm["tasks"], arm["tasks_complete"]) == (2, 3, 2)
    assert arm["trials"] == {"pass": 3, "fail": 2, "invalid": 1, "missing": 0}
    assert (arm["mean_at_k_pct"], arm["pass_hat_k_pct"], arm["pass_at_k_pct"]) == (75, 50, 100)
    assert arm["gap_pp"] == 25
    assert arm["gap_pp_invalid_as_fail"] == pytest.approx(100 / 6)
    assert (arm["best_run_pct"], arm["worst_run_pct"]) == (pytest.approx(200 / 3), 50)
    execution = arm["executions"][0]
    assert (execution["started_at"], execution["ended_at"]) == (
        "2027-01-15T08:00:00Z",
        "2027-01-15T08:01:00Z",
    )
    assert execution["incomplete_tasks"] == ["t.2"]


def test_what_cannot_be_said_is_null(make: Any) -> None:
    text = report_json(build_report([make.record(make.spec(), ["???", "???"])]))
    (arm,) = json.loads(text)["arms"]
    figures = [
        value
        for key, value in arm.items()
        if key.endswith("_pct") or key in ("gap_pp", "gap_pp_invalid_as_fail")
    ]
    assert figures == [None] * 8
    assert [arm[key] for key in arm if key.endswith("_ci95")] == [None] * 6
    assert "NaN" not in text


def test_empty_store() -> None:
    data = report_data(build_report([]))
    assert data.pop("report_schema") == 2
    assert data.pop("simulated") is False
    assert data.pop("protected") is False
    assert data.pop("notice") is None
    assert {row["gap_pp"] for row in data.pop("published")} == {24.4, 12.0, 13.5}
    assert set(map(tuple, data.values())) == {()}


def test_written_whole_or_not_at_all(make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = build_report([make.record(make.spec(), ["++-", "+--"])])
    path = tmp_path / "new" / "report.json"
    write_report_json(report, path)
    assert path.read_text() == report_json(report)
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("disk")))
    with pytest.raises(UserError, match=r"report\.json cannot be written: disk"):
        write_report_json(build_report([]), path)
    assert path.read_text() == report_json(report)
    assert [p.name for p in path.parent.iterdir()] == ["report.json"]
