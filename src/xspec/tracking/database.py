"""The store's MLflow database: `mlflow.db` and `artifacts/`, and the experiment `xspec` in it.

Only the tracking process imports this module with MLflow; what must be cheap (`projected_marks`) reads the database
with sqlite3.
"""

import contextlib
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlflow import MlflowClient

EXPERIMENT = "xspec"
EXECUTION_TAG = "xspec.execution_id"
MARK_TAG = "xspec.projected"


@dataclass(frozen=True, slots=True)
class Tracking:
    """An open database and the experiment that holds the store's executions."""

    client: "MlflowClient"
    experiment_id: str


def database_path(store: Path) -> Path:
    return store / "mlflow.db"


def artifact_path(store: Path) -> Path:
    return store / "artifacts"


def database_uri(store: Path) -> str:
    return f"sqlite:///{database_path(store)}"


@contextlib.contextmanager
def open_tracking(store: Path) -> Iterator[Tracking]:
    """Opens the database, makes it first if need be. Call it with the store's tracking lock held."""
    from mlflow import MlflowClient

    artifact_path(store).mkdir(exist_ok=True)
    client = MlflowClient(tracking_uri=database_uri(store))
    backend: Any = client._tracking_client.store
    try:
        with backend.engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA journal_mode=WAL")
        yield _experiment_in(client, backend, store)
    finally:
        backend.engine.dispose()  # leaves one file, without a write-ahead log beside it


def _experiment_in(client: "MlflowClient", backend: Any, store: Path) -> Tracking:
    follow_move(backend, store)
    experiment = client.get_experiment_by_name(EXPERIMENT)
    if experiment is None:
        made = client.create_experiment(EXPERIMENT, artifact_location=str(artifact_path(store)))
        experiment = client.get_experiment(made)
    elif experiment.lifecycle_stage == "deleted":
        client.restore_experiment(experiment.experiment_id)
    _put_default_away(client)
    return Tracking(client, experiment.experiment_id)


def describe_experiment(tracking: Tracking, tags: Mapping[str, str]) -> None:
    """Sets those of the experiment's tags that are not so already."""
    there = tracking.client.get_experiment(tracking.experiment_id).tags
    for name, value in tags.items():
        if there.get(name) != value:
            tracking.client.set_experiment_tag(tracking.experiment_id, name, value)


def follow_move(backend: Any, store: Path) -> bool:
    """Corrects the artifact addresses, which MLflow keeps absolute, if the store was moved; returns whether it was."""
    from mlflow.store.tracking.dbmodels.models import SqlExperiment, SqlRun

    now = str(artifact_path(store))
    with backend.ManagedSessionMaker() as session:
        experiment = session.query(SqlExperiment).filter(SqlExperiment.name == EXPERIMENT).one_or_none()
        if experiment is None or experiment.artifact_location == now:
            return False
        before = experiment.artifact_location
        for run in session.query(SqlRun).filter(SqlRun.experiment_id == experiment.experiment_id):
            if run.artifact_uri.startswith(f"{before}/"):
                run.artifact_uri = now + run.artifact_uri.removeprefix(before)
        experiment.artifact_location = now
    return True


def projected_marks(store: Path) -> dict[str, str | None] | None:
    """What each execution's run says it was made from, by execution id; None if the database needs attention.

    Cheap: no MLflow. The mark is empty where a projection was killed, and None where a person deleted the run in
    the UI.
    """
    if not database_path(store).exists():
        return None
    try:
        with contextlib.closing(
            sqlite3.connect(f"{database_path(store).as_uri()}?mode=ro", uri=True, timeout=20)
        ) as connection:
            where = connection.execute(
                "SELECT artifact_location FROM experiments WHERE name = ?", (EXPERIMENT,)
            ).fetchone()
            rows = connection.execute(
                "SELECT e.value, coalesce(p.value, ''), r.lifecycle_stage FROM tags e"
                " JOIN runs r ON r.run_uuid = e.run_uuid"
                " LEFT JOIN tags p ON p.run_uuid = e.run_uuid AND p.key = ?"
                " WHERE e.key = ?",
                (MARK_TAG, EXECUTION_TAG),
            ).fetchall()
    except sqlite3.Error:
        return None
    if where is None or where[0] != str(artifact_path(store)):
        return None
    return {execution: None if stage == "deleted" else mark for execution, mark, stage in rows}


def _put_default_away(client: "MlflowClient") -> None:
    """MLflow makes an empty experiment `Default` in every new database; a person would look there first."""
    default = client.get_experiment_by_name("Default")
    if default is not None and default.lifecycle_stage == "active":
        client.delete_experiment(default.experiment_id)
