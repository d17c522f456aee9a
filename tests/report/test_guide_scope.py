"""Guided arms carry the scope of their guide wherever they are shown, and unlike scopes are warned about."""

import json
from typing import Any

from xspec.guides.rule import Rule
from xspec.guides.rules import guide_blob
from xspec.report.build import build_report
from xspec.report.html import report_html
from xspec.report.json_form import report_data
from xspec.report.markdown import report_markdown
from xspec.report.sentences import arm_names, sentences
from xspec.report.table import report_text

INFO = {task: {"cluster": "s" if task != "t.2" else "t.2"} for task in ("t.0", "t.1", "t.2")}


def guide(sources: dict[str, str]) -> dict[str, Any]:
    """Task → the source task of the one rule it gets."""
    rules = [Rule(f"rule of {source}", source_tasks=(source,)) for source in sources.values()]
    blob: dict[str, Any] = json.loads(guide_blob(rules, {task: [i] for i, task in enumerate(sources)}))
    return blob


SAME = guide({"t.0": "t.0", "t.1": "t.1"})
SIMILAR = guide({"t.0": "t.1", "t.1": "t.0"})
TRANSFER = guide({"t.0": "t.2", "t.2": "t.0"})


def report_of(make: Any, **guides: Any) -> Any:
    records = [make.record(make.spec(), ["+++", "+-+"], execution="x-0", arm="baseline", task_info=INFO)]
    for i, (arm, blob) in enumerate(guides.items(), start=1):
        spec = make.spec(guide=str(i))
        rows = ["+++", "+++"]
        records.append(make.record(spec, rows, execution=f"x-{i}", arm=arm, task_info=INFO, guide=blob))
    return build_report(records)


def warnings(report: Any) -> list[str]:
    return [s.text for group in report.groups for s in sentences(group) if s.warning]


def test_the_label_stands_behind_the_arm_s_name_in_every_form(make: Any) -> None:
    report = report_of(make, guided=SAME)
    assert list(arm_names(report.groups[0]).values()) == ["baseline", "guided (same-task)"]
    assert "same-task 2, no rules 1 of 3 tasks" in report_text(report, 200)
    for text in (report_text(report, 200), report_markdown(report), report_html(report)):
        assert "guided (same-task)" in text
    arms = {arm["arm"]: arm["guide"] for arm in report_data(report)["arms"]}
    assert arms["baseline"] is None
    assert arms["guided"] == {
        "digest": "sha256:" + "1" * 64,
        "rules": 2,
        "scope": "same-task",
        "tasks_by_scope": {"same-task": 2, "no rules": 1},
    }
    assert not [text for text in warnings(report) if "scope" in text or "published" in text]


def test_a_same_task_gap_beside_another_scope_is_warned_about(make: Any) -> None:
    found = warnings(report_of(make, one=SAME, other=SIMILAR))
    assert any("one (same-task) same-task, other (similar-task) similar-task" in text for text in found)
    assert not any(
        "different scope" in text for text in warnings(report_of(make, one=SIMILAR, other=TRANSFER))
    )


def test_the_published_counterpart_is_named(make: Any) -> None:
    (similar,) = [text for text in warnings(report_of(make, one=SIMILAR)) if "published" in text]
    assert similar == (
        "one (similar-task): the published gap of 12 is same-task, this guide is similar-task: its counterpart is 13.5."
    )
    (transfer,) = [text for text in warnings(report_of(make, one=TRANSFER)) if "published" in text]
    assert transfer.endswith("this guide is transfer: it has no published counterpart.")


def test_published_rows_carry_a_scope(make: Any) -> None:
    rows = report_data(report_of(make))["published"]
    assert [row["scope_label"] for row in rows] == [None, "same-task", "similar-task"]


def test_a_guide_whose_sources_nobody_names_is_said_to_be_of_unknown_scope(make: Any) -> None:
    blob = json.loads(guide_blob([Rule("Be careful.")]))
    report = report_of(make, guided=blob)
    assert list(arm_names(report.groups[0]).values()) == ["baseline", "guided"]
    texts = [s.text for s in sentences(report.groups[0])]
    assert any(
        "1 rule of which not all say which tasks they were made from: scope unknown." in t for t in texts
    )
