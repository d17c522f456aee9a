"""The verb `guide`, and a guide's way from a file into a spec."""

import json
from pathlib import Path

import pytest

from xspec.__main__ import main

GUIDE = {
    "xspec_guide": 1,
    "rules": [
        {"content": "Look the account up before you pay.", "source_tasks": ["banking.user_task_0"]},
        {"content": "Read every message of the channel.", "source_tasks": ["slack.user_task_0"]},
    ],
    "provenance": {"generator": "somebody", "benchmark": "agentdojo", "runs": [0, 2]},
}
TASKS = "benchmark.tasks=[banking.user_task_0,slack.user_task_0,slack.user_task_1]"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("guide")
    (folder / "guide.json").write_text(json.dumps(GUIDE))
    return folder


@pytest.fixture(autouse=True)
def there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


GUIDED = ("show", "+arm=guided", "guide=altk", "guide.file=guide.json")


def test_show_tells_scope_and_counts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*GUIDED, TASKS]) == 0
    assert "2 rules, same-task 2, no rules 1 of 3 tasks" in capsys.readouterr().err


def test_show_task_prints_the_messages_as_they_are_sent(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*GUIDED, TASKS, "--task", "banking.user_task_0"]) == 0
    out = capsys.readouterr().out
    assert "## Guidelines\n- Look the account up before you pay.\n\n[user]\n" in out
    assert main([*GUIDED, TASKS, "--task", "slack.user_task_1"]) == 0
    assert "Guidelines" not in capsys.readouterr().out


def test_the_map_does_not_hang_on_the_chosen_tasks(capsys: pytest.CaptureFixture[str]) -> None:
    digests = set()
    for tasks in (TASKS, "benchmark.tasks=[banking.user_task_0]"):
        assert main([*GUIDED, tasks]) == 0
        digests.add(json.loads(capsys.readouterr().out)["guide"]["digest"])
    assert len(digests) == 1


REFUSED = {
    "no chosen task gets a rule": (
        [*GUIDED, "benchmark.tasks=[slack.user_task_1]"],
        "gives no rule to any of 1 task",
    ),
    "n without top-n": ([*GUIDED, TASKS, "guide.n=3"], "guide.n=3 belongs to guide.selection=top-n"),
    "top-n without n": ([*GUIDED, TASKS, "guide.selection=top-n"], "guide.n=3"),
    "an unknown selection": ([*GUIDED, TASKS, "guide.selection=best"], "guide.selection"),
    "another benchmark's rules": (
        ["show", "benchmark=choices", "guide=altk", "guide.file=guide.json"],
        "are none of choices's",
    ),
    "no file": ([*GUIDED[:3], TASKS], "guide.file must be given"),
    "a spec without a guide": (["guide", "show", "xs-"], "has no guide"),
}


@pytest.mark.parametrize(("arguments", "message"), REFUSED.values(), ids=list(REFUSED))
def test_refused_in_one_line(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    if arguments[-1] == "xs-":
        assert main(["show", TASKS, "guide=none"]) == 0
        arguments = [*arguments[:2], capsys.readouterr().err.split()[0]]
    assert main(arguments) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1


def test_guide_show_of_a_file_and_of_a_spec(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["guide", "show", "guide.json"]) == 0
    out = capsys.readouterr().out
    assert "guide.json: guide file, 2 rules" in out
    assert "  runs: 0, 2\n" in out
    assert main([*GUIDED, TASKS]) == 0
    spec_id = capsys.readouterr().err.split()[0]
    assert main(["guide", "show", spec_id]) == 0
    out = capsys.readouterr().out
    assert f"{spec_id}: 2 rules; same-task 2, no rules 1 of 3 tasks" in out
    assert "[0] from banking.user_task_0\n- Look the account up before you pay." in out


def test_guide_diff(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "other.md").write_text("- Read every message of the channel.\n- Ask first.\n")
    assert main(["guide", "diff", "guide.json", "other.md"]) == 0
    out = capsys.readouterr().out
    assert "+ - Ask first." in out
    assert "the other has it from other source tasks" in out
    assert out.endswith("0 rules in common, 2 only in A, 2 only in B\n")


def test_guide_lint_finds_an_answer_of_the_real_benchmark(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["guide", "lint", "guide.json", TASKS]) == 0
    assert capsys.readouterr().out.endswith("2 rules, 0 errors, 0 warnings\n")
    leaking = {
        **GUIDE,
        "rules": [{**GUIDE["rules"][0], "content": "Pay to UK12345678901234567890 each time."}],
    }  # type: ignore[index]
    (folder / "leaking.json").write_text(json.dumps(leaking))
    assert main(["guide", "lint", "leaking.json", TASKS]) == 2
    assert "leak: rule 0 holds 'UK12345678901234567890'" in capsys.readouterr().out


def test_a_source_that_the_benchmark_does_not_have_counts_for_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Scope is computed, not claimed. A task of another split is one of the benchmark's all the same."""
    claim = {
        "Look the room up before you switch a lamp.": "plain.77",
        "Round no number of minutes.": "choices:worded.0",
        "Name the style as the user does.": "agentdojo:banking.user_task_0",
    }
    rules = [{"content": text, "source_tasks": [t]} for text, t in claim.items()]
    (folder / "claimed.json").write_text(json.dumps({"xspec_guide": 1, "rules": rules}))
    real = [{"content": "Look before you pay.", "source_tasks": ["worded.0"]}]
    (folder / "real.json").write_text(json.dumps({"xspec_guide": 1, "rules": real}))
    words = ["benchmark=choices", "benchmark.split=plain", "benchmark.limit=2"]
    for file, scope in (("claimed.json", "unsourced"), ("real.json", "transfer")):
        assert main(["show", *words, "guide=file", f"guide.file={file}"]) == 0
        assert f", {scope} 2 of 2 tasks" in capsys.readouterr().err
    assert main(["guide", "lint", "claimed.json", *words]) == 0
    out = capsys.readouterr().out
    assert "rule 0 names source tasks that the benchmark does not have (plain.77)" in out
    assert "3 rules, 0 errors, 3 warnings" in out
    assert main(["guide", "lint", "real.json", *words]) == 0
    assert "0 warnings" in capsys.readouterr().out
