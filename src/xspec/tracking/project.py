"""`project`: what the journals say, brought into Parquet and MLflow. Idempotent, from any process, at any time.

Parquet is made here. MLflow costs seconds of import and 200 MB, so a process of its own makes that part
(`python -m xspec.tracking STORE`), and only if the database, read with sqlite3, lacks something.
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from xspec.errors import XspecError
from xspec.records.executions import ExecutionFolder, executions_of
from xspec.records.parquet import journal_sizes
from xspec.records.parquet_lock import is_held
from xspec.spec.store import Store
from xspec.tracking.database import projected_marks
from xspec.tracking.summary import project_tables

PROJECTION = 2
"""Version of what MLflow is told. Raised when a run would say more or other than before."""

_PASSED = ("PATH", "HOME", "LANG", "LANGUAGE", "TMPDIR", "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX")


class ProjectionFailed(XspecError):
    """MLflow could not be brought up to date. Nothing is lost: the next projection tries again."""


def project_tables_of(store: Store) -> None:
    """Brings the Parquet tables of every execution up to date. Costs two small files each where nothing is new.

    A store that can only be read shows what was projected before.
    """
    if not os.access(store.path, os.W_OK):
        return
    for folder in executions_of(store):
        project_tables(store, folder)


def project_all(store: Store) -> int:
    """Brings Parquet and MLflow up to date; returns how many executions MLflow lacked. Raises ProjectionFailed.

    Executions that another process works on are left to it, as far as MLflow goes.
    """
    project_tables_of(store)
    lacking = pending(store)
    if lacking:
        run_tracking_process(store.path)
    return len(lacking)


def project(store: Store, folder: ExecutionFolder) -> None:
    """Brings one execution up to date, and MLflow with it for whatever else it lacks."""
    project_tables(store, folder)
    project_all(store)


def pending(store: Store) -> list[ExecutionFolder]:
    """The executions that MLflow lacks or knows less of than their journals say, but those being worked on now."""
    folders = executions_of(store) if os.access(store.path, os.W_OK) else []
    if not folders:
        return []
    marks = projected_marks(store.path)
    return [
        folder
        for folder in folders
        if (sizes := journal_sizes(folder))
        and (marks is None or marks.get(folder.path.name, "") not in (None, mark_of(sizes)))
        and not is_held(folder.path / "lease")
    ]


def mark_of(sizes: Mapping[int, int]) -> str:
    """What a run in MLflow was made from: the projection's version and the size of each journal."""
    return " ".join([f"v{PROJECTION}", *(f"{stint}:{size}" for stint, size in sorted(sizes.items()))])


def tracking_environment(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The allow-listed environment of a process that runs MLflow: no key, no rerouting, no telemetry."""
    passed = {name: value for name, value in environ.items() if name in _PASSED or name.startswith("LC_")}
    return passed | {
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "DO_NOT_TRACK": "1",
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
        "GIT_PYTHON_REFRESH": "quiet",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONUTF8": "1",
    }


def run_tracking_process(store: Path) -> None:
    """Runs the MLflow part to its end. Raises ProjectionFailed with the last line it said."""
    command = [sys.executable, "-m", "xspec.tracking", str(store)]
    done = subprocess.run(
        command,
        env=tracking_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise ProjectionFailed(
            f"MLflow could not be brought up to date ({said[-1]}); `python -m xspec project` tries again"
        )
