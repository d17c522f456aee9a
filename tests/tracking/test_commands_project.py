"""Commands leave Parquet and MLflow up to date, unless they are told to leave MLflow for later."""

import sqlite3
from pathlib import Path

import pytest

from xspec.__main__ import main

SMALL = ["benchmark.tasks=[banking.user_task_0,slack.user_task_0]", "k=2"]


def tracked(store: Path) -> int:
    """How many executions MLflow knows."""
    if not (store / "mlflow.db").exists():
        return 0
    with sqlite3.connect(store / "mlflow.db") as connection:
        (count,) = connection.execute("SELECT count(*) FROM tags WHERE key = 'xspec.execution_id'").fetchone()
    connection.close()
    return int(count)


def test_an_execution_ends_in_mlflow_and_the_next_report_makes_up_for_one_that_did_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "store"
    assert main([*SMALL, f"store={store}"]) == 0
    assert tracked(store) == 0, "the tests leave MLflow for later"
    assert list(store.glob("executions/*/parquet/trials-1.parquet"))
    monkeypatch.delenv("XSPEC_MLFLOW")
    assert main(["report", "--store", str(store)]) == 0
    assert tracked(store) == 1
    assert main([*SMALL, "k=1", f"store={store}"]) == 0
    assert tracked(store) == 2
