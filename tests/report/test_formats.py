"""The verb `report`: every format of one store, written whole; and what a plan takes from it."""

import json
from pathlib import Path
from typing import Any

import pytest

from xspec.cli import plan, report
from xspec.errors import StoreError, UserError
from xspec.records.executions import ExecutionFolder, executions_of
from xspec.records.journal import Journal
from xspec.records.rows import AttemptEnded, AttemptStarted, Step
from xspec.report.page import comparison_page
from xspec.spec.store import Store
from xspec.tracking.summary import project_tables, read_summary

TASKS = [f"t.{i}" for i in range(12)]


@pytest.fixture
def store(tmp_path: Path, make: Any, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Two arms of k = 2 over 12 tasks in a store whose MLflow part is left alone."""
    monkeypatch.setattr(report, "bring_up_to_date", lambda _: None)
    filled = Store(tmp_path / "store")
    for arm, guide, rows in (
        ("baseline", None, ["+-+-+-+-+-+-", "-+-+-+-+-+-+"]),
        ("guided", "a", ["+" * 12, "+" * 12]),
    ):
        spec = make.spec(guide=guide, tasks=TASKS)
        filled.put_spec(spec)
        folder = ExecutionFolder.create(filled, spec.id, arm, ["k=2"])
        folder.lock_path(1).write_text(json.dumps({"must_match": {}}))
        with Journal(folder.journal_path(1)) as journal:
            for run, row in enumerate(rows):
                for task, letter in zip(TASKS, row, strict=True):
                    trial(journal, make, run, task, letter)
    return filled


def trial(journal: Journal, make: Any, run: int, task: str, letter: str) -> None:
    place = {"run": run, "task": task, "take": 0, "step": 0}
    at = {"call": 0, "attempt": 0, "member": "a", "at": 1_800_000_000.0}
    journal.append(
        AttemptStarted(**place, **at, spec_id="xs", request_digest="sha256:" + "0" * 64, concurrency=1)
    )
    usage = {"prompt_tokens": 30, "completion_tokens": 10}
    journal.append(AttemptEnded(**place, **at, status=200, error=None, waited_s=0, latency_s=1, **usage))
    reply = {"role": "assistant", "content": f"{letter} done"}
    journal.append(
        Step(
            **place,
            at=1_800_000_000.0,
            member="a",
            request_digest="sha256:" + "0" * 64,
            finish_reason="stop",
            refusal=None,
            actions=[],
            added=[{"role": "user", "content": "do"}, reply],
        )
    )
    outcome = {"+": "pass", "-": "fail"}[letter]
    counts = {"steps": 1, "calls": 1, "attempts": 1, "retry_count": 0}
    journal.append(make.trial(run, task, outcome, **counts, **usage))


def test_every_format(store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("r.html", "r.json", "r.md", "r.txt"):
        assert report.main(["--store", str(store.path), "-o", str(tmp_path / "out" / name)]) == 0
    texts = {path.suffix: path.read_text() for path in (tmp_path / "out").iterdir()}
    assert set(texts) == {".html", ".json", ".md", ".txt"}
    assert texts[".html"].startswith("<!doctype html>") or "<!doctype html>" in texts[".html"][:20]
    for text in texts.values():
        assert "The guide helped" in text
        assert "SIMULATED MODEL" in text
    data = json.loads(texts[".json"])
    assert data["arms"][0]["reconciliation"]["agrees"] is True
    assert data["arms"][0]["reconciliation"]["idle_passes"] == 12
    assert "wrote" in capsys.readouterr().err


def test_intervals_are_metrics(store: Store) -> None:
    folder = next(f for f in executions_of(store) if f.info.arm == "baseline")
    project_tables(store, folder)
    found = {row["name"]: row["value"] for row in read_summary(folder, "metrics") if row["run"] is None}
    # Every task passes once in two runs: the gap is 50 in each, without any spread to take an interval from.
    assert found["gap_pp"] == 50
    assert "gap_pp_ci95_low" not in found
    # None is flawless, and with 12 tasks the rule of three leaves 22% that might be.
    assert found["pass_hat_2_pct_ci95_low"] == 0
    assert found["pass_hat_2_pct_ci95_high"] == pytest.approx(100 * (1 - 0.05 ** (1 / 12)), abs=5)


def test_a_place_that_cannot_be_written_is_one_line(store: Store, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot be written"):
        report.main(["--store", str(store.path), "-o", str(tmp_path / "file" / "r.html")])


def test_a_folder_is_no_file_to_write(store: Store, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(UserError, match="out cannot be written: Is a directory"):
        report.main(["--store", str(store.path), "-o", str(tmp_path / "out")])
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".out")] == []


@pytest.mark.parametrize(
    ("was", "became"), [('"outcome":"pass"', '"outcome":"won"'), ('"calls":1', '"calls":"one"')]
)
def test_a_journal_edited_by_hand_is_one_line(store: Store, was: str, became: str) -> None:
    journal = executions_of(store)[0].journal_path(1)
    journal.write_text(journal.read_text().replace(was, became, 1))
    with pytest.raises(StoreError, match="has a row of another form") as error:
        report.main(["--store", str(store.path)])
    assert "\n" not in str(error.value)


def test_a_benchmark_without_executions_is_not_an_empty_store(store: Store) -> None:
    with pytest.raises(UserError, match=r"--benchmark choices: no such execution in .* some of agentdojo"):
        report.main(["--store", str(store.path), "--benchmark", "choices"])


@pytest.mark.parametrize("margin", ["0", "100", "-3"])
def test_a_margin_is_points(store: Store, margin: str) -> None:
    with pytest.raises(UserError, match="margin"):
        report.main(["--store", str(store.path), f"--margin={margin}"])


def test_the_page_of_an_execution_shows_what_it_compares_with(store: Store) -> None:
    folders = [ExecutionFolder(path) for path in sorted((store.path / "executions").iterdir())]
    first, second = (comparison_page(store, folder) for folder in folders)
    assert first == second
    assert "The guide helped" in first
    folders[1].lock_path(1).write_text("broken")
    with folders[1].journal_path(1).open("a") as journal:
        journal.write("{}\n")
    alone = comparison_page(store, folders[0])
    assert "One arm by itself" in alone


def test_a_plan_from_what_is_stored(
    store: Store, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "_EXPERIMENTS", 300)
    spec_id = next(
        f.info.spec_id
        for f in map(ExecutionFolder, (store.path / "executions").iterdir())
        if f.info.arm == "baseline"
    )
    assert plan.main(["--store", str(store.path), "--from", spec_id, "--k", "2", "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["simulated"] is True
    cost = data["plans"][0]["at_hand"]["cost"]
    assert cost == {"trials": 48, "calls": 48, "prompt_tokens": 48 * 30, "completion_tokens": 48 * 10}
