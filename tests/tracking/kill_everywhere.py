"""Projects copies of a store, killed at each point in turn, then again; prints what stands in the databases.

Run as a program: MLflow is imported once, and each projection is a fork of it.
"""

import json
import os
import shutil
import signal
import sqlite3
import sys
from pathlib import Path
from typing import Any

import warm_mlflow  # noqa: F401 (imported before the first fork)

from xspec.spec.store import Store
from xspec.tracking import mlflow_runs
from xspec.tracking.__main__ import bring_up_to_date

TABLES = ("experiments", "runs", "metrics", "latest_metrics", "params", "tags")


def forked(path: Path, kill_at: int | None = None) -> int:
    """Projects in a child; returns its exit status, -9 if it was killed at the point of that number."""
    child = os.fork()
    if child == 0:
        count = 0

        def reached(_point: str) -> None:
            nonlocal count
            if count == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
            count += 1

        mlflow_runs.reached = reached
        bring_up_to_date(Store(path, create=False))
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def state(path: Path) -> dict[str, Any]:
    connection = sqlite3.connect(path / "mlflow.db")
    counts = {table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in TABLES}
    statuses = sorted(connection.execute("SELECT name, status FROM runs").fetchall())
    artifacts = {
        p.relative_to(path / "artifacts").as_posix().split("/", 2)[2]
        for p in (path / "artifacts").rglob("*")
        if p.is_file()
    }
    connection.close()
    return {"counts": counts, "statuses": statuses, "artifacts": sorted(artifacts)}


def main(source: Path, work: Path) -> None:
    ends = []
    for kill_at in [None, *range(100)]:
        path = work / f"killed-{kill_at}"
        shutil.copytree(source, path)
        end = forked(path, kill_at)
        again = forked(path)
        ends.append({"kill_at": kill_at, "end": end, "again": again, **state(path)})
        if kill_at is not None and end == 0:
            break
    print(json.dumps(ends))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
