"""DuckDB views over the Parquet tables of a store: in memory, read-only, each with fixed columns also when empty."""

import glob
from pathlib import Path

import duckdb

from xspec.records.parquet_columns import STINT_TABLES
from xspec.spec.store import Store
from xspec.tracking.summary_columns import SUMMARY_TABLES

_STINT_FILES = {"trial_rows": "trials", "steps": "steps", "attempts": "attempts", "calls": "calls"}

_TRIALS = """
CREATE VIEW trials AS
SELECT * EXCLUDE (latest) FROM (
    SELECT *, take = max(take) OVER (PARTITION BY execution_id, run, task) AS latest FROM trial_rows
) WHERE latest
"""

_RUNS = """
CREATE VIEW runs AS
SELECT
    e.execution_id, e.spec_id, e.arm, r.run,
    coalesce(t.passed, 0) AS passed,
    coalesce(t.failed, 0) AS failed,
    coalesce(t.invalid, 0) AS invalid,
    e.tasks - coalesce(t.ended, 0) AS missing,
    100.0::DOUBLE * t.passed / nullif(t.passed + t.failed, 0) AS pass_share_pct,
    coalesce(t.retry_count, 0) AS retry_count,
    CASE WHEN t.ended IS NULL THEN 0 ELSE t.total_tokens END AS total_tokens,
    coalesce(t.replies_uncounted, 0) AS replies_uncounted,
    coalesce(t.waited_s, 0) AS waited_s,
    t.started_at, t.ended_at
FROM executions e
CROSS JOIN LATERAL (SELECT unnest(range(e.k))::INTEGER AS run) r
LEFT JOIN (
    SELECT
        execution_id, run,
        count(*) FILTER (outcome = 'pass') AS passed,
        count(*) FILTER (outcome = 'fail') AS failed,
        count(*) FILTER (outcome = 'invalid') AS invalid,
        count(*) AS ended,
        sum(retry_count)::BIGINT AS retry_count,
        sum(
            CASE WHEN coalesce(prompt_tokens, completion_tokens) IS NOT NULL
            THEN coalesce(prompt_tokens, 0) + coalesce(completion_tokens, 0) END
        )::BIGINT AS total_tokens,
        sum(replies_uncounted)::BIGINT AS replies_uncounted,
        sum(waited_s) AS waited_s,
        min(started_at) AS started_at,
        max(ended_at) AS ended_at
    FROM trials GROUP BY ALL
) t USING (execution_id, run)
WHERE e.agent <> 'gateway'
"""

RUN_COLUMNS = {
    "execution_id": "`ex-…`",
    "spec_id": "`xs-…`",
    "arm": "label of the arm; null if it has none",
    "run": "0 to k-1",
    "passed": "trials that passed",
    "failed": "trials that failed",
    "invalid": "trials that say nothing about the agent",
    "missing": "tasks of the spec without a trial in this run",
    "pass_share_pct": "passes over valid trials; null if there is none",
    "retry_count": "over its current trials",
    "total_tokens": "over its current trials; null if no reply said",
    "replies_uncounted": "replies of its current trials that did not say how many tokens they took",
    "waited_s": "over its current trials",
    "started_at": "start of its first trial",
    "ended_at": "end of its last trial so far",
}

VIEWS = {
    "executions": "one row an execution",
    "runs": "one row a run of an execution, also where it has no trial yet; a gateway's has none",
    "trials": "the current row of each (execution, run, task)",
    "trial_rows": "every trial row, those among them that a later take superseded",
    "steps": "every step of every take",
    "attempts": "every attempt of every take",
    "calls": "every call that another program made through a gateway",
    "params": "the spec of each execution, flattened",
    "metrics": "the figures of each execution and run",
}


def open_views(store: Store) -> duckdb.DuckDBPyConnection:
    """A connection in which the views stand. It can read the store's executions and nothing else, and not write."""
    connection = duckdb.connect(config={"autoinstall_known_extensions": "false"})
    executions = store.path / "executions"
    for view, table in _STINT_FILES.items():
        _over_files(connection, view, executions, f"{table}-*.parquet", STINT_TABLES[table].empty_table())
    for table, schema in SUMMARY_TABLES.items():
        _over_files(connection, table, executions, f"{table}.parquet", schema.empty_table())
    connection.execute(_TRIALS)
    connection.execute(_RUNS)
    folders = {f"{executions}/", f"{glob.escape(str(executions))}/"}
    connection.execute(f"SET allowed_directories=[{', '.join(map(_quoted, sorted(folders)))}]")
    connection.execute("SET enable_external_access=false")
    connection.execute("SET lock_configuration=true")
    return connection


def column_docs(view: str) -> dict[str, str]:
    """What each column of a view means, for docs/store.md."""
    if view == "runs":
        return dict(RUN_COLUMNS)
    schema = {**STINT_TABLES, **SUMMARY_TABLES}["trials" if view == "trial_rows" else view]
    return {field.name: field.metadata[b"what"].decode() for field in schema}


def _over_files(
    connection: duckdb.DuckDBPyConnection, view: str, executions: Path, name: str, empty: object
) -> None:
    """A view over all files of that name, or an empty one with the right columns: DuckDB refuses an empty glob."""
    if next(executions.glob(f"ex-*/parquet/{name}"), None) is None:
        connection.register(f"_no_{view}", empty)
        connection.execute(f"CREATE VIEW {view} AS SELECT * FROM _no_{view}")
        return
    pattern = f"{glob.escape(str(executions))}/ex-*/parquet/{name}"
    connection.execute(f"CREATE VIEW {view} AS SELECT * FROM read_parquet({_quoted(pattern)})")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
