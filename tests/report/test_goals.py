"""Scenario goal completion in the report's forms, and not where clusters have one task each."""

import json
from typing import Any

import pytest

from xspec.report.build import build_report
from xspec.report.html import report_html
from xspec.report.json_form import report_data, report_json
from xspec.report.markdown import report_markdown
from xspec.report.model import Report
from xspec.report.table import report_text

TASKS = ("a_1", "a_2", "b_1", "b_2", "c_1")
LEFT_OUT = "c_2"


@pytest.fixture
def report(make: Any) -> Report:
    info = {task: {"cluster": task[0], "difficulty": "12"[task[0] == "b"]} for task in (*TASKS, LEFT_OUT)}
    spec, guided = make.spec(tasks=TASKS), make.spec(tasks=TASKS, guide="a")
    return build_report(
        [
            make.record(spec, ["++-++", "++++-"], execution="x-1", arm="baseline", task_info=info),
            make.record(guided, ["++++?", "+-?++"], execution="x-2", arm="guided", task_info=info),
        ]
    )


def test_json_has_both_figures_the_scenarios_they_are_over_and_difficulties(report: Report) -> None:
    baseline, guided = (arm["goal_completion"] for arm in json.loads(report_json(report))["arms"])
    valid = baseline["valid_only"]
    assert (valid["scenarios"], valid["scenarios_complete"], valid["tasks"]) == (3, 2, 4)
    assert (valid["tgc_pct"], valid["sgc_pct"]) == (87.5, 75)
    assert (valid["run_tgc_pct"], valid["run_sgc_pct"]) == ([75, 100], [50, 100])
    assert [(d["difficulty"], d["scenarios_complete"], d["sgc_pct"]) for d in baseline["by_difficulty"]] == [
        ("1", 1, 100),
        ("2", 1, 50),
    ]
    assert (guided["valid_only"]["scenarios_complete"], guided["invalid_as_fail"]["scenarios_complete"]) == (
        1,
        2,
    )
    assert (guided["valid_only"]["sgc_pct"], guided["invalid_as_fail"]["sgc_pct"]) == (50, 50)


def test_people_see_the_same(report: Report) -> None:
    row = ["87.5", "75.0", "100.0", "50.0", "2 of 3"]
    text = report_text(report, width=100)
    line = next(line for line in text.splitlines() if "2 of 3" in line)
    assert [cell in line for cell in row] == [True] * 5
    assert "scenarios of which every task was chosen" in " ".join(text.split())
    narrow = report_text(report, width=40)
    assert "scenarios complete: 2 of 3" in narrow
    markdown = report_markdown(report)
    assert "| arm | TGC % | SGC % | SGC 95% |" in markdown
    assert "| 2 of 3 |" in markdown
    page = report_html(report)
    assert "<caption>Goal completion</caption>" in page
    assert '<td class="n">2 of 3</td>' in page


def test_without_scenarios_nothing_is_said(make: Any) -> None:
    report = build_report([make.record(make.spec(), ["+++", "+-+"])])
    assert report_data(report)["arms"][0]["goal_completion"] is None
    for text in (report_text(report), report_markdown(report), report_html(report)):
        assert "SGC" not in text


def test_a_list_that_holds_a_part_of_a_scenario_says_how_large_it_is(make: Any) -> None:
    """The manifest has no third task of `a`; that there is one, its rows say."""
    tasks = ("a_1", "a_2")
    info = {task: {"cluster": "a", "cluster_tasks": 3} for task in tasks}
    report = build_report([make.record(make.spec(tasks=tasks), ["++", "++"], task_info=info)])
    (goals,) = (arm["goal_completion"]["valid_only"] for arm in report_data(report)["arms"])
    assert (goals["scenarios"], goals["scenarios_complete"], goals["sgc_pct"]) == (1, 0, None)
