"""`project`: what the journals say, brought into Parquet and MLflow. Idempotent, from any process, at any time.

Parquet is made here. MLflow costs seconds of import and 200 MB, so a process of its own makes that part
(`python -m xspec.tracking STORE`), and only if the database, read with sqlite3, lacks something.
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from xspec.benchmarks.protected import INCLUDE, protection_of
from xspec.errors import XspecError
from xspec.records.executions import ExecutionFolder, executions_of
from xspec.records.parquet import journal_sizes
from xspec.records.parquet_lock import is_held
from xspec.spec.store import Store
from xspec.tracking.database import projected_marks
from xspec.tracking.summary import project_tables

PROJECTION = 4
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


def project_all(store: Store, *, include_protected: bool = False) -> int:
    """Brings Parquet and MLflow up to date; returns how many executions MLflow lacked. Raises ProjectionFailed.

    Executions that another process works on are left to it, as far as MLflow goes. Artifacts get the texts of
    protected benchmarks only with `include_protected`; what has them once keeps them.
    """
    project_tables_of(store)
    lacking = pending(store, include_protected=include_protected)
    if lacking:
        run_tracking_process(store.path, *([INCLUDE] if include_protected else []))
    return len(lacking)


def project(store: Store, folder: ExecutionFolder) -> None:
    """Brings one execution up to date, and MLflow with it for whatever else it lacks."""
    project_tables(store, folder)
    project_all(store)


def pending(store: Store, *, include_protected: bool = False) -> list[ExecutionFolder]:
    """The executions that MLflow lacks or knows less of than their journals say, but those being worked on now.

    With `include_protected` those whose protected texts were left out are among them.
    """
    folders = executions_of(store) if os.access(store.path, os.W_OK) else []
    if not folders:
        return []
    marks = projected_marks(store.path)
    return [
        folder
        for folder in folders
        if (sizes := journal_sizes(folder))
        and (
            marks is None
            or marks.get(folder.path.name, "")
            not in (None, *_satisfying(store, folder, sizes, include_protected))
        )
        and not is_held(folder.path / "lease")
    ]


def mark_of(sizes: Mapping[int, int], *, with_protected: bool = False) -> str:
    """What a run in MLflow was made from: the projection's version, the size of each journal, and whether protected
    texts were put in.
    """
    journals = [f"{stint}:{size}" for stint, size in sorted(sizes.items())]
    return " ".join([f"v{PROJECTION}", *journals, *(["protected"] if with_protected else [])])


def _satisfying(
    store: Store, folder: ExecutionFolder, sizes: Mapping[int, int], include_protected: bool
) -> tuple[str, ...]:
    """The marks with which nothing is lacking."""
    if not include_protected:
        return mark_of(sizes), mark_of(sizes, with_protected=True)
    protected = protection_of(store.spec(folder.info.spec_id).benchmark.kind) is not None
    return (mark_of(sizes, with_protected=protected),)


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


def run_tracking_process(store: Path, *words: str) -> None:
    """Runs the MLflow part to its end. Raises ProjectionFailed with the last line it said."""
    command = [sys.executable, "-m", "xspec.tracking", str(store), *words]
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
