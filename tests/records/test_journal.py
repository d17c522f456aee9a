"""The journal: append-only, torn at most at its end, and never quietly wrong."""

import os
from pathlib import Path
from typing import Any

import pytest

from xspec.errors import DiskFailed, StoreError
from xspec.records.executions import ExecutionFolder
from xspec.records.journal import Journal, read_journal
from xspec.records.rows import AttemptStarted, Trial
from xspec.spec.store import Store


def started(run: int = 0, take: int = 0, attempt: int = 0, task: str = "a") -> AttemptStarted:
    return AttemptStarted(
        run=run,
        task=task,
        take=take,
        step=0,
        call=0,
        attempt=attempt,
        member="main",
        at=1.0,
        spec_id="xs-1",
        request_digest="sha256:0",
        concurrency=1,
    )


def trial(run: int = 0, take: int = 0, outcome: Any = "pass", task: str = "a", **more: Any) -> Trial:
    given = {
        "cause": None,
        "ended": "answered",
        "verdict": None,
        "steps": 1,
        "calls": 1,
        "attempts": 1,
        "retry_count": 0,
        "prompt_tokens": 0,
        "completion_tokens": 0,
        "waited_s": 0.0,
        "started_at": 1.0,
        "ended_at": 2.0,
        **more,
    }
    return Trial(run=run, task=task, take=take, outcome=outcome, **given)


def test_rows_come_back_in_order_and_by_kind(tmp_path: Path) -> None:
    with Journal(tmp_path / "j") as journal:
        journal.append(started())
        journal.append(trial(detail='a "quoted"\nline é'))
        journal.append(started(1))
    rows = list(read_journal(tmp_path / "j", ("attempt_started", "trial")))
    assert [row["kind"] for row in rows] == ["attempt_started", "trial", "attempt_started"]
    assert Trial(**rows[1]) == trial(detail='a "quoted"\nline é')
    assert [row["run"] for row in read_journal(tmp_path / "j", ("attempt_started",))] == [0, 1]


@pytest.mark.parametrize("keep", [0, 1, 20, -1])
def test_torn_tail_is_dropped(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "j"
    with Journal(path) as journal:
        journal.append(trial(0))
        whole = path.read_bytes()
        journal.append(trial(1))
    line = path.read_bytes()[len(whole) :]
    path.write_bytes(whole + line[:keep])
    assert [row["run"] for row in read_journal(path, ("trial",))] == [0]


def test_broken_line_before_the_end_is_no_torn_tail(tmp_path: Path) -> None:
    path = tmp_path / "j"
    with Journal(path) as journal:
        journal.append(trial(0))
        journal.append(trial(1))
    path.write_bytes(path.read_bytes().replace(b'"run":0', b'"run":'))
    with pytest.raises(StoreError, match="line 1 is not JSON"):
        list(read_journal(path, ("trial",)))


def test_a_journal_is_never_opened_twice(tmp_path: Path) -> None:
    Journal(tmp_path / "j").close()
    with pytest.raises(FileExistsError):
        Journal(tmp_path / "j")


def test_disk_that_takes_half_a_row_ends_the_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "j"
    write = os.write
    with Journal(path) as journal:
        journal.append(trial(0))
        monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[: len(data) // 2]))
        with pytest.raises(DiskFailed, match="the disk took"):
            journal.append(trial(1))
        monkeypatch.undo()
        with pytest.raises(DiskFailed, match="an earlier row was torn"):
            journal.append(trial(2))
    assert [row["run"] for row in read_journal(path, ("trial",))] == [0]


def test_full_disk_is_said(tmp_path: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        journal = Journal(tmp_path / "j")
        os.dup2(full.fileno(), journal._fd)
        with pytest.raises(DiskFailed, match="No space left"):
            journal.append(trial(0))


def test_progress_over_stints(tmp_path: Path) -> None:
    """The newest take is current, wherever it stands; what a killed process sent is abandoned, not lost."""
    folder = ExecutionFolder.create(Store(tmp_path), "xs-0123456789abcdef", None, [])
    with Journal(folder.journal_path(1)) as journal:
        journal.append(started(0))
        journal.append(trial(0, outcome="invalid", cause="route:timeout"))
        journal.append(started(1))
        journal.append(started(1, attempt=1))
    with Journal(folder.journal_path(2)) as journal:
        journal.append(started(0, take=1))
        journal.append(trial(0, take=1))
        journal.append(started(1, take=1))
        journal.append(trial(1, take=1, outcome="fail", cause="verdict"))
    progress = folder.progress()
    assert {place: (t.take, t.outcome) for place, t in progress.trials.items()} == {
        (0, "a"): (1, "pass"),
        (1, "a"): (1, "fail"),
    }
    assert progress.takes == {(0, "a"): 2, (1, "a"): 2}
    assert (progress.superseded, progress.attempts, progress.abandoned_attempts) == (1, 5, 2)


def test_changed_execution_file_is_said(tmp_path: Path) -> None:
    folder = ExecutionFolder.create(Store(tmp_path), "xs-0123456789abcdef", None, [])
    (folder.path / "execution.json").write_text("{}")
    with pytest.raises(StoreError, match="missing or was changed"):
        _ = folder.info


def test_a_line_that_is_no_row_is_noticed_whatever_is_wanted(tmp_path: Path) -> None:
    path = tmp_path / "journal-1.jsonl"
    path.write_bytes(b'{garbage\n{"kind":"trial"}\n')
    with pytest.raises(StoreError, match="line 1 is no row"):
        list(read_journal(path, ("trial",)))


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('{"kind":"trial","oops":1}', "KeyError"),
        ('{"kind":"attempt_started","run":0,"task":7,"take":"x"}', "TypeError"),
        (
            '{"kind":"attempt","run":0,"task":"a","take":0,"prompt_tokens":"x","completion_tokens":1}',
            "TypeError",
        ),
    ],
)
def test_rows_of_another_form_are_a_changed_journal(tmp_path: Path, line: str, why: str) -> None:
    folder = ExecutionFolder.create(Store(tmp_path), "xs-0000000000000000", None, [])
    folder.journal_path(1).write_text(line + "\n")
    with pytest.raises(StoreError, match=f"has a row of another form .{why}: .*the journal was changed"):
        folder.progress()


def test_an_unknown_outcome_is_a_changed_journal(tmp_path: Path) -> None:
    folder = ExecutionFolder.create(Store(tmp_path), "xs-0000000000000000", None, [])
    with Journal(folder.journal_path(1)) as journal:
        journal.append(trial(outcome="won"))
    with pytest.raises(StoreError, match="no outcome is called 'won'"):
        folder.progress()


@pytest.mark.parametrize("text", ["[]", "{}", "null", '{"must_match": 3}', "{"])
def test_a_lock_that_is_none(tmp_path: Path, text: str) -> None:
    folder = ExecutionFolder.create(Store(tmp_path), "xs-0000000000000000", None, [])
    folder.lock_path(1).write_text(text)
    with pytest.raises(StoreError, match="was changed"):
        folder.lock(1)
