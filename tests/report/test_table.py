"""The report as a user sees it: whole numbers at any width, and what must be said beside them."""

import re
from io import BytesIO, TextIOWrapper
from typing import Any

import pytest
from rich.console import Console

from xspec.report.build import build_report
from xspec.report.model import Report
from xspec.report.sentences import nothing_stored
from xspec.report.table import print_report, report_text

AT = 1_800_000_000.0
COMMAND = "python -m xspec +arm=guided_floating"


@pytest.fixture
def two_by_two(make: Any) -> Report:
    """Four arms, one with an invalid trial, one unfinished, one executed twice."""
    tasks = [f"banking.user_task_{i}" for i in range(6)]
    pool = [make.member("a"), make.member("b")]
    settings = {"tasks": tasks, "k": 3}
    trials = {"retry_count": 123}
    baseline = make.spec(**settings)
    records = [
        make.record(baseline, ["++--++", "+---++", "++-+++"], execution="x-1", arm="baseline"),
        make.record(baseline, ["++--++", "++--++", "++--++"], execution="x-5", arm="baseline", at=AT + 5),
        make.record(
            make.spec(**settings, members=pool),
            ["++--+?", "+---++", "++--++"],
            execution="x-2",
            arm="floating",
        ),
        make.record(make.spec(**settings, guide="a"), ["+++-++"] * 3, execution="x-3", arm="guided"),
        make.record(
            make.spec(**settings, members=pool, guide="a"),
            ["+++-++", "+++-++", "......"],
            execution="x-4",
            arm="guided_floating",
            continue_with=COMMAND,
        ),
    ]
    records[0].trials[0] = make.trial(0, tasks[0], "pass", prompt_tokens=1_234_567, **trials)
    return build_report(records)


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("width", [200, 120, 100, 80, 60, 40])
def test_nothing_is_shortened_at_any_width(two_by_two: Report, width: int) -> None:
    text = report_text(two_by_two, width)
    assert "…" not in text
    assert "\x1b" not in text
    assert all(len(line) <= width for line in text.splitlines() if COMMAND not in line)
    for figure in ("66.7", "53.3", "83.3", "1,251,667", "140", "16.7"):
        assert figure in text
    for arm in ("baseline", "floating", "guided", "guided_floating"):
        assert arm in text
    assert f"    {COMMAND}\n" in text


@pytest.mark.parametrize(("width", "tables"), [(200, 2), (100, 3), (80, 3), (40, 0)])
def test_columns_are_folded_on_purpose(two_by_two: Report, width: int, tables: int) -> None:
    text = report_text(two_by_two, width)
    assert len(re.findall(r"^─+$", text, re.M)) == tables


def test_snapshot_at_80_columns(two_by_two: Report) -> None:
    text = report_text(two_by_two, 80).translate({0x2013: "-", 0x2212: "-", 0x394: "D"})
    text = "\n".join(line.rstrip() for line in text.split("\n"))
    start = text.index("                 Mean@3")
    assert (
        text[start : text.index("baseline: xs-")]
        == """\
                 Mean@3  Pass^3  Pass@3   gap    gap pp,  flips  best-worst
arm                   %       %       %    pp  inv.=fail      %       run %
───────────────────────────────────────────────────────────────────────────
baseline           66.7    50.0    83.3  16.7       16.7   33.3   83.3-50.0
floating           53.3    40.0    60.0  13.3       22.2   20.0   66.7-50.0
guided             83.3    83.3    83.3   0.0        0.0    0.0   83.3-83.3
guided_floating       -       -       -     -          -      -   83.3-83.3

                      gap
arm                   95%  pass  fail  invalid  missing  retries     tokens
───────────────────────────────────────────────────────────────────────────
baseline         0.0-72.9    12     6        0        0      140  1,251,667
floating         0.0-65.7    10     7        1        0       18     18,000
guided           0.0-39.3    15     3        0        0       18     18,000
guided_floating         -    10     2        0        6       12     12,000

                           gap D             95%        p   could   inv.
arm              against      pp        interval  p  Holm  see pp  =fail
────────────────────────────────────────────────────────────────────────
floating         baseline   +5.6  -72.9 to +72.9  -     -       -    yes
guided           baseline  -16.7  -72.9 to +72.9  -     -       -     no
guided_floating  baseline      -               -  -     -       -    yes
guided           floating  -22.2  -72.9 to +72.9  -     -       -    yes
guided_floating  floating      -               -  -     -       -     no
guided_floating  guided        -               -  -     -       -    yes

"""
    )


def test_what_is_said_below(two_by_two: Report) -> None:
    text = flat(report_text(two_by_two, 100))
    assert "guided_floating: unfinished, 6 of 18 trials missing. Go on with python -m xspec" in text
    assert "guided_floating: no task has 3 valid trials yet" in text
    assert "floating: 5.6% of trials invalid (1 of 18: 1 retries_exhausted)" in text
    assert "floating: 1 of 6 tasks left out for want of 3 valid trials: banking.user_task_5." in text
    assert "not over the same tasks: 5 of 6" in text
    assert "Compare routes by the gap with invalid counted as failed." in text
    assert (
        "baseline: 2 executions; the table shows the first finished one, x-1. Besides it: x-5 Mean@3" in text
    )
    assert "Gap = Mean@3 \N{MINUS SIGN} Pass^3 in percentage points" in text
    assert "read it with Mean@3" in text
    assert text.count("SIMULATED MODEL") == 1


def test_a_real_model_is_not_called_simulated(make: Any) -> None:
    record = make.record(make.spec(members=[make.openai_member()]), ["+++"] * 2)
    assert "SIMULATED" not in report_text(build_report([record]))


def test_no_valid_trial_is_no_score(make: Any) -> None:
    text = report_text(build_report([make.record(make.spec(), ["???", "???"], arm="baseline")]), 80)
    row = next(line for line in text.splitlines() if line.startswith("baseline "))
    assert row.split() == ["baseline"] + ["\N{EN DASH}"] * 7
    assert "baseline: no valid trial, so no score." in text


def test_groups_are_never_in_one_table(make: Any) -> None:
    records = [
        make.record(make.spec(), ["+++"] * 2, execution="x-1", arm="one"),
        make.record(make.spec(k=3), ["+++"] * 3, execution="x-2", arm="two", at=AT + 1),
    ]
    first, second = report_text(build_report(records)).split("agentdojo v1.2.1")[1:]
    assert "one" in first
    assert "two:" not in first
    assert "Mean@3" in second
    assert "Mean@3" not in first


def test_arms_apart_in_time_are_named(make: Any) -> None:
    specs = make.spec(), make.spec(guide="a")
    records = [
        make.record(spec, ["+++"] * 2, execution=f"x-{i}", arm=f"arm{i}", at=AT + 86_400 * i)
        for i, spec in enumerate(specs)
    ]
    assert "Carried out at different times: arm0 and arm1." in flat(report_text(build_report(records)))


def test_two_specs_of_one_name_are_told_apart(make: Any) -> None:
    specs = make.spec(guide="a"), make.spec(guide="b")
    records = [
        make.record(spec, ["+++"] * 2, execution=f"x-{i}", arm="guided") for i, spec in enumerate(specs)
    ]
    text = report_text(build_report(records), 100)
    for spec in specs:
        assert f"guided ({spec.id[:9]})" in text


def test_a_label_is_no_markup(make: Any) -> None:
    assert "[red]x" in report_text(build_report([make.record(make.spec(), ["+++"] * 2, arm="[red]x")]))


def test_an_unknown_command_is_described(make: Any) -> None:
    text = flat(report_text(build_report([make.record(make.spec(), ["+++", "+.."], arm="baseline")])))
    assert "Go on with the command that began it" in text


def test_accepted_lock_changes_are_listed(make: Any) -> None:
    record = make.record(make.spec(), ["+++"] * 2, arm="baseline", lock_changes=["python 3.11.9 → 3.11.10"])
    assert "baseline: resumed under another lock: python 3.11.9 → 3.11.10." in report_text(
        build_report([record])
    )


def test_one_run_says_nothing_about_consistency(make: Any) -> None:
    text = flat(report_text(build_report([make.record(make.spec(k=1), ["++-"])])))
    assert "At k = 1 it is 0 by definition" in text
    assert "those with 1 valid trial." in text


def test_ascii_output(two_by_two: Report) -> None:
    written = BytesIO()
    file = TextIOWrapper(written, encoding="ascii")
    print_report(two_by_two, Console(file=file, width=80, color_system=None))
    file.flush()
    assert b"83.3-50.0" in written.getvalue()


def test_empty_store_says_what_to_do() -> None:
    text = nothing_stored("runs")
    assert text.startswith("Nothing stored yet in runs.")
    assert "`make run`" in text
