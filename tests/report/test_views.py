"""The views: documented, typed, the same when empty, and read-only; each query of the docs runs."""

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from xspec.cli import query
from xspec.errors import UserError
from xspec.records.executions import ExecutionFolder
from xspec.records.journal import Journal
from xspec.records.rows import AttemptEnded, AttemptStarted, Call, Step
from xspec.report.load import load_record
from xspec.report.views import VIEWS, column_docs, open_views
from xspec.spec.store import Store
from xspec.tracking.project import project_tables_of

DOCS = Path(__file__).resolve().parents[2] / "docs"
QUERIES = re.findall(r"\*\*(\d+)\. .*?```sql\n(.*?)```", (DOCS / "queries.md").read_text(), re.DOTALL)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "a 'quoted' [store]*")


@pytest.fixture
def filled(store: Store, make: Any, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Two arms, k = 2, three tasks; one trial of the first arm was invalid and taken again in a second stint."""
    for arm, guide, stints in (
        ("baseline", None, [["+-?", "++-"], ["..+", "..."]]),
        ("guided", "a", [["+++", "++-"]]),
    ):
        spec = make.spec(guide=guide)
        store.put_spec(spec)
        folder = ExecutionFolder.create(store, spec.id, arm, ["k=2"])
        for number, rows in enumerate(stints, start=1):
            folder.lock_path(number).write_text(json.dumps({"must_match": {}}))
            with Journal(folder.journal_path(number)) as journal:
                for run, row in enumerate(rows):
                    for task, letter in zip(spec.benchmark.tasks, row, strict=True):
                        if letter != ".":
                            _trial(journal, make, run, task, letter, take=number - 1)
                if arm == "baseline":
                    journal.append(_call(spec.benchmark.tasks[0]))
    project_tables_of(store)
    return store


def _trial(journal: Journal, make: Any, run: int, task: str, letter: str, take: int) -> None:
    place = {"run": run, "task": task, "take": take, "step": 0}
    for attempt, status in enumerate((429, 200)):
        sent = {**place, "call": 0, "attempt": attempt, "member": "a", "at": 1_800_000_000.0 + attempt}
        journal.append(AttemptStarted(**sent, spec_id="xs-0", request_digest="sha256:0", concurrency=2))
        error = None if status == 200 else "rate_limited"
        tokens = {} if error else {"prompt_tokens": 900, "completion_tokens": 100}  # as the trial has them
        journal.append(
            AttemptEnded(**sent, status=status, error=error, waited_s=0.5 * attempt, latency_s=0.1, **tokens)
        )
    actions = [{"action": {"name": f"tool_{run}", "arguments": {}}, "error": False}]
    journal.append(
        Step(
            **place,
            at=1_800_000_000.0,
            request_digest="sha256:0",
            member="a",
            finish_reason="stop",
            refusal=None,
            actions=actions,
            added=[{"role": "assistant", "content": "\x1b[31mdone"}],
        )
    )
    outcome = {"+": "pass", "-": "fail", "?": "invalid"}[letter]
    journal.append(make.trial(run, task, outcome, take=take))


def _call(task: str) -> Call:
    return Call(
        run=0,
        task=task,
        take=0,
        step=0,
        call=0,
        at=1_800_000_000.0,
        by="path",
        endpoint="chat_completions",
        streamed=False,
        asked_digest="sha256:0",
        bytes=10,
        tools=None,
        changes=[{"field": "temperature", "asked": 1, "sent": 0}],
        observed=["messages"],
        again="retry",
        ended="answered",
        status=200,
        why=None,
        latency_s=0.5,
    )


def rows_of(store: Store, sql: str) -> list[dict[str, Any]]:
    names, rows = query.run_query(store, sql)
    return [dict(zip(names, row, strict=True)) for row in rows]


def described(store: Store) -> dict[str, list[tuple[str, str]]]:
    connection = open_views(store)
    return {v: [row[:2] for row in connection.execute(f"DESCRIBE {v}").fetchall()] for v in VIEWS}


def test_an_empty_store_has_empty_views_of_the_same_types(
    store: Store, filled: Store, tmp_path: Path
) -> None:
    empty = Store(tmp_path / "empty")
    assert described(empty) == described(filled)
    assert all(rows_of(empty, f"SELECT * FROM {view}") == [] for view in VIEWS)


def test_the_docs_name_every_column_with_its_type(store: Store) -> None:
    text = (DOCS / "store.md").read_text()
    for view, columns in described(store).items():
        section = text.split(f"### {view}\n")[1].split("\n##")[0]
        if view == "trial_rows":
            continue
        docs = column_docs(view)
        assert re.findall(r"^\| (`.*) \|$", section, re.MULTILINE) == [
            f"`{name}` | {kind} | {docs[name]}" for name, kind in columns
        ]


def test_the_queries_are_numbered() -> None:
    assert [int(number) for number, _ in QUERIES] == list(range(1, 12))


@pytest.mark.parametrize("sql", [sql for _, sql in QUERIES], ids=[number for number, _ in QUERIES])
def test_each_query_of_the_docs_finds_something(filled: Store, sql: str) -> None:
    if "outcome = 'invalid'\nGROUP" in sql:
        sql = sql.replace("FROM trials", "FROM trial_rows")  # its only invalid trial was taken again
    assert rows_of(filled, sql)


def test_the_first_query_agrees_with_the_report(filled: Store) -> None:
    found = {row["arm"]: row["gap_pp"] for row in rows_of(filled, QUERIES[0][1])}
    stored = {r["arm"]: r["gap_pp"] for r in rows_of(filled, "SELECT arm, gap_pp FROM executions")}
    assert found == pytest.approx(stored)
    assert found["guided"] == pytest.approx(100 / 6)


def test_only_current_trials_are_trials(filled: Store) -> None:
    sql = "SELECT count(*) AS n FROM {} WHERE arm = 'baseline'"
    assert rows_of(filled, sql.format("trials")) == [{"n": 6}]
    assert rows_of(filled, sql.format("trial_rows")) == [{"n": 7}]
    assert rows_of(filled, sql.format("attempts")) == [{"n": 14}]
    assert rows_of(filled, "SELECT DISTINCT outcome FROM trials WHERE take = 1") == [{"outcome": "pass"}]


def test_a_run_without_trials_is_a_run(store: Store, make: Any) -> None:
    spec = make.spec()
    store.put_spec(spec)
    folder = ExecutionFolder.create(store, spec.id, None, [])
    with Journal(folder.journal_path(1)) as journal:
        _trial(journal, make, 0, "t.0", "+", take=0)
    project_tables_of(store)
    found = rows_of(store, "SELECT run, passed, missing, pass_share_pct FROM runs ORDER BY run")
    assert found == [
        {"run": 0, "passed": 1, "missing": 2, "pass_share_pct": 100},
        {"run": 1, "passed": 0, "missing": 3, "pass_share_pct": None},
    ]


def test_parquet_and_journals_tell_the_report_the_same(
    filled: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [ExecutionFolder(path) for path in sorted((filled.path / "executions").glob("ex-*"))]
    from_parquet = [load_record(filled, folder) for folder in folders]
    monkeypatch.setattr("xspec.report.load.is_current", lambda *_: False)
    assert from_parquet == [load_record(filled, folder) for folder in folders]


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT * FROM nothing", "Table with name nothing does not exist"),
        ("SELEC 1", "syntax error"),
        ("SELECT task::INTEGER FROM trials", "Could not convert"),
        ("", "one SELECT"),
        ("SELECT 1; SELECT 2", "one SELECT"),
        ("COPY (SELECT 1) TO '{store}/executions/out.csv'", "one SELECT"),
        ("EXPLAIN ANALYZE COPY (SELECT 1) TO '{store}/executions/out.csv'", "one SELECT"),
        ("CREATE TABLE t (a INT)", "one SELECT"),
        ("SET threads = 1", "one SELECT"),
        ("ATTACH '{store}/mlflow.db'", "one SELECT"),
        ("SELECT * FROM read_text('/etc/hostname')", "disabled by configuration"),
        ("SELECT * FROM '/etc/hostname'", "the query failed"),
    ],
)
def test_what_is_no_query_is_one_line(filled: Store, sql: str, said: str) -> None:
    with pytest.raises(UserError, match=said) as error:
        rows_of(filled, sql.replace("{store}", str(filled.path).replace("'", "''")))
    assert "\n" not in str(error.value)
    assert not (filled.path / "executions" / "out.csv").exists()


@pytest.mark.parametrize("sql", ["DESCRIBE trials", "SUMMARIZE runs", "WITH x AS (SELECT 1) SELECT * FROM x"])
def test_reading_forms_are_queries(filled: Store, sql: str) -> None:
    assert rows_of(filled, sql)


ODD = (
    "SELECT 'NaN'::DOUBLE AS a, 'inf'::DOUBLE AS b, 1.5::DECIMAL(4,2) AS c, TIMESTAMP '2026-01-02 03:04:05' AS d,"
    " [1, 2] AS e, NULL AS f, '01' AS g, 12345678901234567890123::HUGEINT AS h"
)


def test_json_has_no_nan(filled: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert query.main([ODD, "--format", "json", "--store", str(filled.path)]) == 0
    (row,) = json.loads(capsys.readouterr().out, parse_constant=lambda name: pytest.fail(name))
    assert row == {
        "a": None,
        "b": None,
        "c": 1.5,
        "d": "2026-01-02T03:04:05",
        "e": [1, 2],
        "f": None,
        "g": "01",
        "h": 12345678901234567890123,
    }


def test_csv(filled: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert query.main([ODD, "--format", "csv", "--store", str(filled.path)]) == 0
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert (row["a"], row["c"], row["e"], row["g"]) == ("", "1.5", "[1, 2]", "01")


def test_the_table_is_aligned_and_safe(filled: Store, capsys: pytest.CaptureFixture[str]) -> None:
    sql = "SELECT arm, gap_pp FROM executions ORDER BY arm"
    assert query.main([sql, "--store", str(filled.path)]) == 0
    assert capsys.readouterr().out.splitlines()[2:] == ["baseline   33.33", "guided     16.67"]
    assert query.main(["SELECT added->>'$[0].content' AS said FROM steps", "--store", str(filled.path)]) == 0
    assert "\x1b" not in capsys.readouterr().out


def test_ids_are_text_everywhere(filled: Store) -> None:
    for view in VIEWS:
        kinds = {
            type(v)
            for row in rows_of(filled, f"SELECT * FROM {view}")
            for n, v in row.items()
            if n.endswith("_id")
        }
        assert kinds == {str}, view
