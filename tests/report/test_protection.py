"""Texts of a protected benchmark: in no form of the report, and in all of them where the user says so."""

import json
from typing import Any

import pytest

from xspec.benchmarks.protected import PROTECTED
from xspec.report.build import build_report
from xspec.report.html import report_html
from xspec.report.json_form import report_json
from xspec.report.markdown import report_markdown
from xspec.report.model import Report
from xspec.report.protection import without_protected_texts
from xspec.report.steps import steps_of
from xspec.report.table import report_text

SECRETS = ("asked-canary", "said-canary", "code-canary", "argument-canary", "told-canary", "detail-canary")


def report_of(make: Any, kind: str) -> Report:
    """Two runs that part, with a text of its own in every place that holds one."""
    base = make.spec()
    spec = base.model_copy(update={"benchmark": base.benchmark.model_copy(update={"kind": kind})})
    rows = ["+-+", "-++"]
    trials = make.record(spec, rows).trials
    info = {task: {"instruction": "asked-canary", "cluster": task} for task in spec.benchmark.tasks}
    steps = []
    for trial in trials:
        code = f"code-canary {trial.run}"
        call = {"name": "app.read", "arguments": {"of": f"argument-canary {trial.run}"}}
        added = [
            {"role": "user", "content": "asked-canary"},
            {"role": "assistant", "content": "said-canary"},
            {"role": "user", "content": "told-canary timed out"},
        ]
        action = {"action": {"code": code}, "error": True, "calls": [call]}
        place = {"run": trial.run, "task": trial.task, "take": 0, "step": 0}
        steps.append({**place, "actions": [action], "added": added})
    told = [make.trial(t.run, t.task, t.outcome, detail="detail-canary") for t in trials]
    record = make.record(spec, rows, task_info=info, steps=steps_of(steps, [], told))
    object.__setattr__(record, "trials", told)
    return build_report([record])


@pytest.fixture
def protected(make: Any) -> Report:
    (kind,) = PROTECTED
    return report_of(make, kind)


def forms(report: Report) -> str:
    return "\n".join(form(report) for form in (report_html, report_json, report_markdown, report_text))


def test_no_form_of_the_report_holds_a_protected_text(protected: Report) -> None:
    assert all(
        secret in forms(protected) for secret in SECRETS if secret not in ("code-canary", "told-canary")
    )
    shown = forms(without_protected_texts(protected))
    assert [secret for secret in SECRETS if secret in shown] == []
    assert "app.read" in shown, "what was called is no secret"
    assert "licence" in shown
    assert "--include-protected puts it in" in shown


def test_figures_are_the_same_and_what_was_done_is_said(protected: Report) -> None:
    whole, shown = (
        json.loads(report_json(report)) for report in (protected, without_protected_texts(protected))
    )
    assert whole["protected"] is shown["protected"] is True
    for data in (whole, shown):
        (group,) = data["groups"]
        assert group.pop("protected") is True
        group.pop("protection")
        for failure in data["arms"][0]["failures"]:
            failure.pop("sample")
    assert whole == shown
    assert "Do not make it public" in report_html(protected)


def test_others_are_left_as_they_are(make: Any) -> None:
    report = report_of(make, "agentdojo")
    assert without_protected_texts(report) == report
    data = json.loads(report_json(report))
    assert data["protected"] is False
    assert data["groups"][0]["protection"] is None
