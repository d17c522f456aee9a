"""The page: one file that needs no network, says what is simulated, and runs nothing that a task or a model wrote."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from xspec.report.build import build_report
from xspec.report.html import _percent, report_html
from xspec.report.markdown import report_markdown
from xspec.report.steps import ExecutionSteps, steps_of

EVIL = '<script>alert("x")</script>'
TASKS = ["t.0", "t.1", "t.2"]
VOID = {"meta", "line", "rect", "circle", "br", "link", "img"}


class Page(HTMLParser):
    """Checks that tags are balanced and keeps what may load something."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.scripts = 0
        self.loads: list[str] = []
        self.ids: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.scripts += tag == "script"
        self.loads += [
            f"{tag} {name}" for name, value in attrs if name in ("src", "srcset", "data", "action")
        ]
        self.loads += [
            value or "" for name, value in attrs if name == "href" and not (value or "").startswith("#")
        ]
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag


def steps(make: Any, trials: Any) -> ExecutionSteps:
    """Run 0 calls a tool, the others answer; everything written is hostile."""
    call = {"id": "1", "function": {"name": "pay", "arguments": json.dumps({"to": EVIL})}}
    rows = []
    for trial in trials:
        place = {"run": trial.run, "task": trial.task, "take": 0, "step": 0}
        reply: dict[str, Any] = {"role": "assistant", "content": EVIL}
        actions = []
        if trial.run == 0:
            reply["tool_calls"] = [call]
            actions = [{"action": {"name": "pay", "arguments": {"to": EVIL}}, "error": False}]
        rows.append(place | {"actions": actions, "added": [{"role": "user", "content": EVIL}, reply]})
    return steps_of(rows, [], trials)


@pytest.fixture
def page(make: Any) -> str:
    pool = [make.member("a"), make.member("b")]
    info = {task: {"instruction": EVIL, "stratum": EVIL, "difficulty": "hard"} for task in TASKS}
    records = []
    for name, spec in (
        ("baseline", make.spec(tasks=TASKS)),
        (EVIL, make.spec(tasks=TASKS, guide="a")),
        ("floating", make.spec(tasks=TASKS, members=pool)),
    ):
        record = make.record(spec, ["++?", "-+."], execution=f"x-{spec.id}", arm=name, task_info=info)
        trials = [make.trial(t.run, t.task, t.outcome, detail=EVIL) for t in record.trials]
        records.append(
            make.record(
                spec,
                ["++?", "-+."],
                execution=f"x-{spec.id}",
                arm=name,
                task_info=info,
                steps=steps(make, trials),
                locks=[{"must_match": {"python": EVIL}, "workers": 4}, {"must_match": {"python": "3.11"}}],
                continue_with=EVIL,
            )
        )
    return report_html(build_report(records))


def test_balanced_and_self_contained(page: str) -> None:
    parsed = Page(page)
    assert parsed.open == []
    assert parsed.loads == []
    assert len(parsed.ids) == len(set(parsed.ids))
    assert not re.search(r"https?://|@import|url\(", page)


def test_nothing_written_by_others_runs(page: str) -> None:
    assert Page(page).scripts == 1
    assert EVIL not in page
    assert "&lt;script&gt;" in page


def test_no_figure_is_no_number(page: str) -> None:
    visible = re.sub(r"<(style|script)>.*?</\1>", "", page, flags=re.S)
    assert not re.search(r"\b(nan|NaN|inf|None|Undefined)\b", visible)


def test_simulated_is_on_the_page(page: str) -> None:
    assert page.count("SIMULATED MODEL") >= 3
    assert "@bottom-center" in page  # at the foot of every printed sheet
    assert "published, not measured" in page


def test_real_models_are_not_called_simulated(make: Any) -> None:
    spec = make.spec(members=[make.openai_member()])
    text = report_html(build_report([make.record(spec, ["+++", "+-+"])]))
    assert "SIMULATED" not in text
    assert "https://api.example.com/v1" in text
    assert "gpt-4.1-2025-04-14" in text
    assert Page(text).loads == []


def test_the_runs_are_shown_where_they_part(page: str) -> None:
    assert "part at step 0" in page
    assert re.search(r"<b>run 0</b>\s*called <code>pay\(", page)
    assert re.search(r"<b>run 1</b>\s*answered", page)


def test_commands_in_remarks_are_code_and_what_stands_around_them_is_escaped(make: Any) -> None:
    text = report_html(build_report([make.record(make.spec(), ["++?", "+-+"], arm="<i>`x`")]))
    assert "<code>--retry-invalid</code> runs them again" in text
    assert "<i>" not in re.sub(r"<i class", "", text)
    assert "&lt;i&gt;<code>x</code>: " in text


def test_figures_are_written_as_figures(make: Any) -> None:
    """No `-3.2%` with a hyphen, no `0.0` for a temperature of 0, no `77 %`."""
    spec = make.spec(tasks=TASKS, sampling={"temperature": 0.0, "top_p": 0.95})
    assert "temperature 0, top_p 0.95" in report_html(build_report([make.record(spec, ["+++", "+-+"])]))
    assert _percent(-0.032) == "\N{MINUS SIGN}3.2%"


def test_an_empty_store() -> None:
    assert "Nothing stored yet" in report_html(build_report([]))
    assert "Nothing stored yet" in report_markdown(build_report([]))


@pytest.mark.parametrize("rows", [["???", "???"], ["...", "..."], ["+++", "+++"], ["---", "---"]])
def test_every_kind_of_nothing(make: Any, rows: list[str]) -> None:
    records = [
        make.record(make.spec(tasks=TASKS), rows, execution="x-1"),
        make.record(make.spec(tasks=TASKS, guide="a"), ["+-+", "+++"], execution="x-2"),
    ]
    assert Page(report_html(build_report(records))).open == []


def test_markdown_escapes_labels(make: Any) -> None:
    text = report_markdown(build_report([make.record(make.spec(), ["+++", "+-+"], arm="a|b<i>")]))
    assert "| a\\|b\\<i>" in text
    assert "SIMULATED MODEL" in text


def test_templates_are_packaged() -> None:
    import xspec.report

    folder = Path(xspec.report.__path__[0]) / "templates"
    assert {path.name for path in folder.iterdir()} == {"report.html", "report.css", "report.js"}


def test_what_stands_beside_the_arms(make: Any) -> None:
    """Another execution, differences beyond factors, drift, an outlier run: each has its place."""
    spec = make.spec(tasks=TASKS, k=3)
    other = make.spec(tasks=TASKS, k=3, timeout_s=5)
    noisy = make.record(spec, ["+++", "+-+", "++-"], execution="x-1", arm="one")
    noisy.trials[0] = make.trial(0, "t.0", "pass", retry_count=400)
    attempts = [
        {"run": 0, "task": "t.0", "take": 0, "step": 0, "call": 0, "attempt": 0, "member": "a", "error": None}
        | {"drift": ["served_model: other-model"]}
    ]
    records = [
        replace(noisy, steps=steps_of([], attempts, noisy.trials)),
        make.record(spec, ["+++", "+++", "++-"], execution="x-2", arm="one", at=1_800_000_100.0),
        make.record(other, ["+++", "+++", "+++"], execution="x-3", arm="two"),
    ]
    text = report_html(build_report(records, allow_differences=True, margin_pp=5))
    assert Page(text).open == []
    assert "one executed again" in text
    assert "served_model: other-model" in text
    assert "route.timeout_s: 60.0 → 5.0" in text
    assert "look at the route before the model" in text
    assert "the counts do not agree" in text
