"""What the report says between arms: values by hand, and the first sentence for a stranger."""

from typing import Any

import pytest

from xspec.report.build import build_report
from xspec.report.headline import headline
from xspec.report.json_form import report_data
from xspec.report.model import Group
from xspec.report.table import report_text

TASKS = [f"t.{i:02}" for i in range(24)]
K = 4


def arms(make: Any, **rows: list[str]) -> Group:
    """Arms by name; `floating` in the name sets the route, `guided` the guide."""
    pool = [make.member("a"), make.member("b")]
    records = [
        make.record(
            make.spec(
                tasks=TASKS,
                k=K,
                guide="a" if "guided" in name else None,
                members=pool if "floating" in name else None,
            ),
            texts,
            execution=f"x-{name}",
            arm=name,
        )
        for name, texts in rows.items()
    ]
    return build_report(records).groups[0]


FLIPPING = ["+" * 12 + "+-" * 6, "+" * 12 + "-+" * 6, "+" * 12 + "+-" * 6, "+" * 12 + "++" * 6]
STEADY = ["+" * 24] * 3 + ["+" * 23 + "-"]


def test_the_guide_that_helped_is_the_first_sentence(make: Any) -> None:
    group = arms(make, baseline=FLIPPING, guided=STEADY)
    # Before: 12 of 24 tasks always pass, the others 3 (6 tasks) or 2 of 4 times. After: one task 3 of 4 times.
    before = 100 * ((12 + 6 * 0.75 + 6 * 0.5) / 24 - 12 / 24)
    after = 100 * ((23 + 0.75) / 24 - 23 / 24)
    first = headline(group)[0].text
    assert first.startswith(
        f"The guide helped: it narrowed the gap by {before - after:.1f} points (guided against"
    )
    assert "95% interval" in first
    assert "p <" in first or "p 0.0" in first
    assert "Pass^4 +45.8" in first


def test_nothing_found_is_not_nothing_there(make: Any) -> None:
    other = [row[::-1] for row in FLIPPING]
    first = headline(arms(make, baseline=FLIPPING, guided=other))[0].text
    assert first.startswith("Cannot tell whether the guide helped")
    assert "the smallest difference it could well have seen is" in first


def test_no_change_needs_a_margin(make: Any) -> None:
    pair = [
        make.record(make.spec(tasks=TASKS, k=K, guide=guide), STEADY, execution=f"x-{guide}")
        for guide in (None, "a")
    ]
    assert "Cannot tell" in headline(build_report(pair).groups[0])[0].text
    within = headline(build_report(pair, margin_pp=30).groups[0])[0].text
    assert "left the gap as it was, within 30 points" in within


def test_steadier_but_worse_is_no_help(make: Any) -> None:
    first = headline(arms(make, baseline=FLIPPING, guided=["+" * 12 + "-" * 12] * 4))[0]
    assert first.text.startswith("The guide made the agent steadier but worse")
    assert first.warning


def test_two_by_two_by_hand(make: Any) -> None:
    group = arms(make, baseline=FLIPPING, guided=STEADY, floating=FLIPPING, guided_floating=STEADY)
    gap = {e.effect: e for e in group.statistics.effects if e.metric == "gap" and not e.invalid_as_fail}
    narrowed = 100 * (1 / 24 * 0.75 - (6 * 0.75 + 6 * 0.5) / 24)
    assert gap["first"].contrast.difference.value == pytest.approx(narrowed)
    assert gap["second"].contrast.difference.value == 0
    assert gap["interaction"].contrast.difference.value == 0
    said = [sentence.text for sentence in headline(group)]
    assert said[0].startswith("The guide helped")
    assert "over both routes" in said[0]
    assert said[1].startswith("Cannot tell the floating route from the fixed one")
    assert "invalid counted as failed" in said[1]


def test_comparisons_in_json(make: Any) -> None:
    pool = [make.member("a"), make.member("b")]
    records = [
        make.record(make.spec(tasks=TASKS, k=K), FLIPPING, execution="x-1", arm="fixed"),
        make.record(
            make.spec(tasks=TASKS, k=K, members=pool),
            ["?" + FLIPPING[0][1:], *FLIPPING[1:]],
            execution="x-2",
            arm="floating",
        ),
    ]
    data = report_data(build_report(records))
    gaps = {row["invalid_as_fail"]: row for row in data["comparisons"] if row["metric"] == "gap_pp"}
    assert set(gaps) == {True, False}
    assert gaps[True]["leads"]
    assert not gaps[False]["leads"]
    # Invalid as failed, one task of 24 has 3 of 4 passes instead of 4: its gap is 75 points.
    assert gaps[True]["difference_pp"] == pytest.approx(75 / 24)
    assert (gaps[False]["difference_pp"], gaps[False]["tasks"], gaps[False]["tasks_left_out"]) == (0, 23, 1)
    mean = next(r for r in data["comparisons"] if r["metric"] == "mean_at_k_pct" and r["leads"])
    assert mean["p"] is not None
    assert mean["p_holm"] is None
    assert data["invalid_shares"][0]["difference_pp"] == pytest.approx(100 / 96)


def test_an_execution_again_is_shown_beside(make: Any) -> None:
    spec = make.spec(tasks=TASKS, k=K)
    records = [make.record(spec, FLIPPING, execution=f"x-{i}", at=1_800_000_000.0 + i) for i in range(2)]
    (again,) = report_data(build_report(records))["arms"][0]["executed_again"]
    assert again["execution_id"] == "x-1"
    assert {row["difference_pp"] for row in again["differences"]} == {0}
    assert again["chance_by_noise"] == 1


def test_counts_that_do_not_reconcile_are_said(make: Any) -> None:
    from xspec.report.steps import ExecutionSteps

    steps = ExecutionSteps({}, calls=1, attempts=1, errors={}, drift=())
    text = " ".join(
        report_text(build_report([make.record(make.spec(), ["+++", "+++"], steps=steps)])).split()
    )
    assert "the counts do not agree: 6 of 6 trials, 24 calls against 1 in the ledger" in text


def test_differences_beyond_factors_only_on_request(make: Any) -> None:
    records = [
        make.record(make.spec(), ["++-", "+--"], execution="x-1", arm="one"),
        make.record(make.spec(timeout_s=5), ["+++", "++-"], execution="x-2", arm="two"),
    ]
    assert len(build_report(records).groups) == 2
    report = build_report(records, allow_differences=True)
    (group,) = report.groups
    ((_, _, fields),) = group.differences
    assert [diff.field for diff in fields] == ["route.timeout_s"]
    assert "differ in more than factors" in " ".join(report_text(report).split())
    assert report_data(report)["groups"][0]["differences"][0]["fields"] == ["route.timeout_s: 60.0 → 5.0"]


def test_one_arm_says_what_its_gap_is(make: Any) -> None:
    said = headline(arms(make, baseline=FLIPPING))
    assert len(said) == 1
    assert "a trial passes 81.2% of the time, but only 50.0% of tasks pass all 4 runs" in said[0].text


@pytest.mark.parametrize("rows", [["?" * 24] * K, ["." * 24] * K, ["-" * 24] * K, ["+" * 24] * K])
def test_every_report_has_an_honest_answer(make: Any, rows: list[str]) -> None:
    group = arms(make, baseline=rows, guided=FLIPPING, floating=rows)
    assert all("nan" not in s.text.lower() and "None" not in s.text for s in headline(group))
