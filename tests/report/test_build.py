"""Which executions become which arm, which arms stand together, and which figures are the arm's."""

from dataclasses import replace
from typing import Any

import pytest

from xspec.errors import StoreError
from xspec.report.build import build_report
from xspec.report.html import report_html
from xspec.report.json_form import report_data
from xspec.report.model import Report

AT = 1_800_000_000.0


def labels(report: Report) -> list[list[str]]:
    return [[arm.label for arm in group.arms] for group in report.groups]


def test_nothing_stored() -> None:
    report = build_report([])
    assert report.groups == ()
    assert not report.simulated


def test_two_by_two_is_one_group_in_the_order_of_the_factors(make: Any) -> None:
    pool = [make.member("a"), make.member("b")]
    specs = {
        "guided_floating": make.spec(members=pool, guide="a"),
        "baseline": make.spec(),
        "guided": make.spec(guide="a"),
        "floating": make.spec(members=pool),
    }
    records = [
        make.record(spec, ["+++", "+-+"], execution=f"x-{name}", arm=name, at=AT + i)
        for i, (name, spec) in enumerate(specs.items())
    ]
    report = build_report(records)
    assert labels(report) == [["baseline", "floating", "guided", "guided_floating"]]
    assert report.groups[0].models == ("rehearsal-a", "rehearsal-b")
    assert build_report(records[::-1]) == report


@pytest.mark.parametrize("changes", [{"k": 3}, {"tasks": ["t.0"]}, {"timeout_s": 1}, {"sampling": {}}])
def test_what_is_not_comparable_stands_apart(make: Any, changes: dict[str, Any]) -> None:
    other = make.spec(**changes)
    rows = ["+" * len(other.benchmark.tasks)] * other.k
    first = make.record(make.spec(), ["+++"] * 2, execution="x-1")
    report = build_report([make.record(other, rows, execution="x-2", at=AT + 1), first])
    assert [[arm.spec_id for arm in group.arms] for group in report.groups] == [[first.spec_id], [other.id]]
    assert [arm.group for group in report.groups for arm in group.arms] == [0, 1]


def test_every_two_arms_of_a_group_share_a_member(make: Any) -> None:
    """a and b both share a member with the pool, but not with each other."""
    a, b = make.spec(members=[make.member("a")]), make.spec(members=[make.member("b")])
    pool = make.spec(members=[make.member("a"), make.member("b")])
    records = [
        make.record(s, ["+++"] * 2, execution=s.id, arm=n) for s, n in ((pool, "pool"), (b, "b"), (a, "a"))
    ]
    assert labels(build_report(records)) in ([["a", "pool"], ["b"]], [["b"], ["a", "pool"]])


def test_the_first_finished_execution_gives_the_figures(make: Any) -> None:
    spec = make.spec()
    records = [
        make.record(spec, ["+++", "+.+"], execution="x-1", at=AT),
        make.record(spec, ["++-", "++?"], execution="x-2", at=AT + 100),
        make.record(spec, ["+++", "+++"], execution="x-3", at=AT + 200),
    ]
    (arm,) = build_report(records).groups[0].arms
    assert arm.chosen.execution_id == "x-2"
    assert [e.execution_id for e in arm.executions] == ["x-1", "x-2", "x-3"]
    assert arm.chosen.incomplete_tasks == ("t.2",)
    assert arm.chosen.invalid_causes == (("retries_exhausted", 1),)
    (arm,) = build_report(records[:1]).groups[0].arms
    assert not arm.chosen.finished


def test_of_unfinished_executions_the_newest_counts(make: Any) -> None:
    spec = make.spec()
    records = [make.record(spec, ["+++", "..."], execution=f"x-{i}", at=AT + i) for i in range(3)]
    (arm,) = build_report(records).groups[0].arms
    assert arm.chosen.execution_id == "x-2"


def test_an_arm_without_a_name_shows_its_levels(make: Any) -> None:
    pool = [make.member("a"), make.member("b")]
    records = [
        make.record(make.spec(), ["+++"] * 2, execution="x-1"),
        make.record(make.spec(members=pool, guide="a"), ["+++"] * 2, execution="x-2"),
    ]
    assert labels(build_report(records)) == [["guide=none route=fixed", "guide=rules route=floating"]]


def test_the_label_is_no_identity(make: Any) -> None:
    spec = make.spec()
    records = [
        make.record(spec, ["+++"] * 2, execution=f"x-{i}", arm=f"name{i}", at=AT + i) for i in range(2)
    ]
    assert labels(build_report(records)) == [["name1"]]


def test_counts_reconcile_and_abandoned_work_costs(make: Any) -> None:
    record = make.record(
        make.spec(),
        ["+-?", "+.."],
        superseded=2,
        abandoned_attempts=3,
        tokens_outside_trials=50,
    )
    execution = build_report([record]).groups[0].arms[0].chosen
    trials = execution.figures.trials
    assert trials.passed + trials.failed + trials.invalid + trials.missing == 2 * 3
    assert (execution.retry_count, execution.total_tokens) == (4, 4 * 1000 + 50)
    assert (execution.superseded, execution.abandoned_attempts) == (2, 3)


def test_tokens_that_no_reply_counted_are_unknown_in_every_run_too(make: Any) -> None:
    silent = {"prompt_tokens": 0, "completion_tokens": 0}
    spec = make.spec()
    trials = [make.trial(run, task, "pass", **silent) for run in range(2) for task in spec.benchmark.tasks]
    record = replace(make.record(spec, ["+++"] * 2), trials=trials, replies=24, uncounted=24)
    report = build_report([record])
    assert report.groups[0].arms[0].chosen.total_tokens is None
    (arm,) = report_data(report)["arms"]
    assert [run["total_tokens"] for run in arm["runs"]] == [None, None]
    assert ">unknown</td>" in report_html(report)


def test_only_a_simulated_member_makes_an_arm_simulated(make: Any) -> None:
    real = make.record(make.spec(members=[make.openai_member()]), ["+++"] * 2, execution="x-1")
    mixed_spec = make.spec(members=[make.openai_member(), make.member("a")])
    mixed = make.record(mixed_spec, ["+++"] * 2, execution="x-2")
    assert not build_report([real]).simulated
    report = build_report([real, mixed])
    assert [arm.simulated for arm in report.groups[0].arms] == [False, True]
    assert report.simulated


def test_a_store_that_contradicts_itself_is_refused(make: Any) -> None:
    record = make.record(make.spec(), ["+++", "+++"])
    with pytest.raises(StoreError, match="stands twice"):
        build_report([record, record])
    for trial, message in (
        (record.trials[0], "two current rows"),
        (make.trial(2, "t.0", "pass"), "no trial of"),
        (make.trial(0, "t.9", "pass"), "no trial of"),
    ):
        broken = make.record(make.spec(), ["+++", "+++"])
        broken.trials.append(trial)
        with pytest.raises(StoreError, match=message):
            build_report([broken])
