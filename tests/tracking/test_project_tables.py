"""From the journal to Parquet: idempotent, whole, typed."""

import json
import os
import re
import subprocess
import sys
import time
from dataclasses import fields
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from xspec.cli.query import run_query
from xspec.errors import StoreError
from xspec.records.executions import ExecutionFolder
from xspec.records.parquet import current_trials, parquet_folder, project_parquet, read_rows, stint_counts
from xspec.records.parquet_columns import ATTEMPTS, CALLS, STEPS, STINT_TABLES, TRIALS
from xspec.records.rows import AttemptEnded, AttemptStarted, Call, Step, Trial
from xspec.report.load import load_record
from xspec.tracking.project import project_tables_of
from xspec.tracking.snapshot import usage
from xspec.tracking.summary import project_tables, read_summary
from xspec.tracking.summary_columns import SUMMARY_TABLES


def files(folder: ExecutionFolder) -> dict[str, tuple[int, int]]:
    """Inode and time of each file: equal means not written again."""
    return {p.name: (p.stat().st_ino, p.stat().st_mtime_ns) for p in parquet_folder(folder).iterdir()}


@pytest.mark.parametrize(
    ("rows", "columns"),
    [((Trial,), TRIALS), ((Step,), STEPS), ((AttemptStarted, AttemptEnded), ATTEMPTS), ((Call,), CALLS)],
    ids=["trials", "steps", "attempts", "calls"],
)
def test_every_field_of_a_journal_row_is_a_column(rows: tuple[Any, ...], columns: Any) -> None:
    known = set(columns.names) | {"kind", "at", "spec_id"}
    assert {field.name for row in rows for field in fields(row)} - known == set()


def test_projecting_again_writes_nothing(maker: Any) -> None:
    folder = maker.execution()
    assert project_tables(maker.store, folder)
    before = files(folder)
    assert not project_tables(maker.store, folder)
    assert not project_tables(maker.store, folder)
    assert files(folder) == before


def test_schemas_are_the_same_where_a_column_is_all_null(maker: Any) -> None:
    folder = maker.execution(["++", "++"])
    maker.stint(folder, ["~.", ".."], take=1)
    maker.stint(folder, ["..", ".."])
    project_tables(maker.store, folder)
    for table, schema in STINT_TABLES.items():
        for stint in (1, 2, 3):
            path = parquet_folder(folder) / f"{table}-{stint}.parquet"
            assert pq.read_schema(path).equals(schema), path.name
    for table, schema in SUMMARY_TABLES.items():
        assert pq.read_schema(parquet_folder(folder) / f"{table}.parquet").equals(schema)


def test_only_the_stint_that_grew_is_written_again(maker: Any) -> None:
    folder = maker.execution(["+.", ".."])
    project_tables(maker.store, folder)
    before = files(folder)
    maker.stint(folder, [".-", "++"])
    assert project_tables(maker.store, folder)
    after = files(folder)
    assert {n for n in before if n.endswith("-1.parquet") and before[n] != after[n]} == set()
    assert {"trials-2.parquet", "steps-2.parquet", "attempts-2.parquet"} <= set(after)
    assert len(current_trials(folder)) == 4


def test_a_torn_tail_is_dropped_and_a_grown_journal_read_again(maker: Any) -> None:
    folder = maker.execution(["+.", ".."])
    path = folder.journal_path(1)
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    project_tables(maker.store, folder)
    assert current_trials(folder) == []
    assert stint_counts(folder).abandoned_attempts == 2
    path.write_bytes(whole)
    project_tables(maker.store, folder)
    assert [trial["outcome"] for trial in current_trials(folder)] == ["pass"]
    assert stint_counts(folder).abandoned_attempts == 0


def test_counts_agree_with_the_journals(maker: Any) -> None:
    folder = maker.execution(["+?", "~-"])
    maker.stint(folder, [".+", "+."], take=1)
    project_tables(maker.store, folder)
    progress, counts = folder.progress(), stint_counts(folder)
    assert counts.trials - len(current_trials(folder)) == progress.superseded == 1
    assert counts.attempts == progress.attempts == len(read_rows(folder, "attempts"))
    assert counts.abandoned_attempts == progress.abandoned_attempts == 1
    assert counts.tokens == progress.tokens
    current = {(t["run"], t["task"]): t["take"] for t in current_trials(folder)}
    assert current == {key: trial.take for key, trial in progress.trials.items()}


def silence(folder: ExecutionFolder, run: int) -> None:
    """The replies of one run no longer say how many tokens they took."""
    path = folder.journal_path(1)
    lines = path.read_text().splitlines(keepends=True)
    mine = [line.startswith(f'{{"kind":"attempt","run":{run}') for line in lines]
    assert any(mine)
    counted = re.compile(r'"(prompt|completion)_tokens":[0-9]+')
    silent = [
        counted.sub(r'"\1_tokens":null', line) if my else line for line, my in zip(lines, mine, strict=True)
    ]
    path.write_text("".join(silent))


def test_tokens_that_no_reply_counted_are_unknown(maker: Any) -> None:
    """Of a trial, a run and an execution. Where only some replies said: the sum of those, and how many did not."""
    folder = maker.execution(["++", "++"])
    silence(folder, 1)
    project_tables(maker.store, folder)
    names = ("run", "prompt_tokens", "completion_tokens", "replies_uncounted")
    said = {tuple(trial[name] for name in names) for trial in current_trials(folder)}
    assert said == {(0, 100, 10, 0), (1, None, None, 1)}
    metrics = {(row["run"], row["name"]): row["value"] for row in read_summary(folder, "metrics")}
    assert (metrics[None, "total_tokens"], metrics[None, "replies_uncounted"]) == (220, 2)
    assert (metrics[0, "total_tokens"], (1, "total_tokens") in metrics) == (220, False)
    _, rows = run_query(maker.store, "SELECT run, total_tokens, replies_uncounted FROM runs ORDER BY run")
    assert list(rows) == [(0, 220, 0), (1, None, 2)]
    record = load_record(maker.store, folder)
    assert (record.uncounted, record.replies) == (2, 4)
    used = usage(folder, current_trials(folder))
    assert (used["prompt_tokens"], used["replies_uncounted"]) == (200, 2)
    silence(folder, 0)
    project_tables(maker.store, folder)
    metrics = {(row["run"], row["name"]): row["value"] for row in read_summary(folder, "metrics")}
    assert (None, "total_tokens") not in metrics
    assert usage(folder, current_trials(folder))["prompt_tokens"] is None


def test_an_attempt_that_never_returned_has_no_end(maker: Any) -> None:
    folder = maker.execution(["~.", ".."])
    project_tables(maker.store, folder)
    (row,) = read_rows(folder, "attempts").to_pylist()
    assert (row["ended_at"], row["status"], row["drift"]) == (None, None, [])
    assert row["started_at"] is not None


def test_trials_carry_their_task_s_stratum(maker: Any) -> None:
    folder = maker.execution()
    project_tables(maker.store, folder)
    assert {t["task"]: t["stratum"] for t in current_trials(folder)} == {
        "banking.user_task_0": "banking",
        "slack.user_task_1": "slack",
    }


def test_a_lost_manifest_costs_the_strata_only(maker: Any) -> None:
    folder = maker.execution()
    maker.store.blob_path(maker.plain["benchmark"]["manifest"]).unlink()
    project_tables(maker.store, folder)
    assert {trial["stratum"] for trial in current_trials(folder)} == {None}


def test_an_execution_without_a_journal_is_left_alone(maker: Any) -> None:
    spec = maker.spec()
    folder = ExecutionFolder.create(maker.store, spec.id, None, [])
    project_tables_of(maker.store)
    assert [p.name for p in folder.path.iterdir()] == ["execution.json"]


def test_files_of_an_older_layout_are_written_again(maker: Any) -> None:
    folder = maker.execution()
    project_parquet(maker.store, folder)
    mark = parquet_folder(folder) / "stints.json"
    mark.write_text(json.dumps({**json.loads(mark.read_text()), "layout": 0}))
    assert project_parquet(maker.store, folder)


def test_a_missing_parquet_file_is_named(maker: Any) -> None:
    folder = maker.execution()
    project_parquet(maker.store, folder)
    (parquet_folder(folder) / "trials-1.parquet").unlink()
    with pytest.raises(StoreError, match=r"trials-1\.parquet is missing or was changed"):
        current_trials(folder)


def test_figures_that_cannot_be_given_have_no_row(maker: Any) -> None:
    folder = maker.execution(["??", "??"])
    project_tables(maker.store, folder)
    names = {row["name"] for row in read_summary(folder, "metrics")}
    assert "gap_pp" not in names
    assert "invalid_share_pct" in names
    (execution,) = read_summary(folder, "executions")
    assert execution["gap_pp"] is None
    assert execution["finished"]


def test_a_process_killed_at_any_rename_leaves_nothing_that_misleads(maker: Any) -> None:
    folder = maker.execution(["+?", "~-"])
    program = """
import os, signal, sys
from xspec.records.executions import ExecutionFolder
from xspec.spec.store import Store
from xspec.tracking.summary import project_tables
count, replace = int(sys.argv[3]), os.replace
def counted(*names):
    global count
    count -= 1
    if count < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    replace(*names)
os.replace = counted
from pathlib import Path
project_tables(Store(sys.argv[1], create=False), ExecutionFolder(Path(sys.argv[2])))
"""
    for count in (0, 2, 3, 5, 7):
        for path in parquet_folder(folder).glob("*"):
            path.unlink()
        command = [sys.executable, "-c", program, str(maker.store.path), str(folder.path), str(count)]
        assert subprocess.run(command, check=False).returncode == -9
        project_tables(maker.store, folder)
        assert len(read_rows(folder, "attempts")) == 7
        assert len(read_summary(folder, "executions")) == 1
        assert [p.name for p in parquet_folder(folder).glob(".*")] == [".lock"]


def test_four_processes_project_one_store_at_once(maker: Any) -> None:
    folders = [maker.execution(arm=f"arm-{i}", sampling={"seed": i}) for i in range(5)]
    program = (
        "import sys; from xspec.spec.store import Store; from xspec.tracking.project import project_tables_of;"
        "project_tables_of(Store(sys.argv[1], create=False))"
    )
    started = [subprocess.Popen([sys.executable, "-c", program, str(maker.store.path)]) for _ in range(4)]
    assert [process.wait(60) for process in started] == [0, 0, 0, 0]
    for folder in folders:
        assert len(current_trials(folder)) == 4
        assert not project_tables(maker.store, folder)


def test_a_hundred_executions_cost_little_when_nothing_is_new(maker: Any) -> None:
    for i in range(100):
        maker.execution(["+-"], arm=f"arm-{i}", sampling={"seed": i})
    project_tables_of(maker.store)
    before = time.process_time()
    project_tables_of(maker.store)
    assert time.process_time() - before < 1


def test_a_store_that_can_only_be_read_is_left_as_it_is(
    maker: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = maker.execution()
    monkeypatch.setattr(os, "access", lambda *_: False)
    project_tables_of(maker.store)
    assert not parquet_folder(folder).exists()


def test_scenarios_are_those_of_the_chosen_tasks(maker: Any) -> None:
    """The manifest has another scenario, none of whose tasks was chosen."""
    tasks = ["banking.user_task_0", "slack.user_task_1"]
    manifest = {
        "tasks": [
            {"id": tasks[0], "cluster": "x", "difficulty": "1"},
            {"id": tasks[1], "cluster": "x", "difficulty": "1"},
            {"id": "other", "cluster": "y", "difficulty": "2"},
        ]
    }
    maker.plain["benchmark"]["manifest"] = maker.store.put_blob(json.dumps(manifest).encode())
    maker.plain["benchmark"]["tasks"] = tasks
    folder = maker.execution(["+-", "++"])
    project_tables(maker.store, folder)
    rows = read_summary(folder, "metrics")
    goals = {(r["run"], r["name"]): r["value"] for r in rows if r["name"].split("_")[0] in ("tgc", "sgc")}
    assert goals[None, "tgc_pct"] == 75
    assert goals[None, "sgc_pct"] == 50
    assert [goals[run, "sgc_pct"] for run in (0, 1)] == [0, 100]
    assert {r["value"] for r in rows if r["name"] == "scenarios_complete"} == {1}
