"""One execution in MLflow: a parent run found by its tag, a nested run for each run, logged once per content.

Every write can be repeated, and the mark that says what the run was made from comes last: a process killed anywhere
in between leaves something that the next one takes up.
"""

import re
import tempfile
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xspec.records.executions import ExecutionFolder, executions_of
from xspec.records.parquet import current_trials
from xspec.spec.store import Store
from xspec.tracking.database import EXECUTION_TAG, MARK_TAG, Tracking
from xspec.tracking.headline import headline, label
from xspec.tracking.snapshot import write_artifacts
from xspec.tracking.summary import read_summary

if TYPE_CHECKING:
    from mlflow.entities import Run

RUN_TAG = "xspec.run"
RUN_OF_TAG = "xspec.run_of"
_FOREIGN = re.compile(r"[^\w .:/-]")


def reached(point: str) -> None:
    """Called between any two writes. Tests end the process here."""


def project_execution(
    tracking: Tracking,
    store: Store,
    folder: ExecutionFolder,
    mark: str,
    page: Callable[[Store, ExecutionFolder], str] | None = None,
    *,
    include_protected: bool = False,
) -> None:
    """Brings the execution's runs up to what its tables say. `mark` names the journals they were made from, `page`
    gives the HTML report that becomes the artifact `report.html`.

    The tables must be projected and the tracking lock held. A run that a person deleted is left alone.
    """
    execution = read_summary(folder, "executions")[0]
    metrics = read_summary(folder, "metrics")
    trials = current_trials(folder)
    parent = _find(tracking, EXECUTION_TAG, execution["execution_id"])
    if any(run.info.lifecycle_stage == "deleted" for run in parent):
        return
    name = label(execution, _number(store, folder))
    began = _milliseconds(execution["began_at"])
    ended = _milliseconds(execution["ended_at"] or execution["began_at"])
    own = {row["name"]: row["value"] for row in metrics if row["run"] is None}
    tags = _tags(execution) | {"mlflow.runName": name, "mlflow.note.content": headline(execution, own)}
    if parent:
        parent_id = parent[0].info.run_id
    else:
        created = tracking.client.create_run(
            tracking.experiment_id,
            start_time=began,
            run_name=name,
            tags={EXECUTION_TAG: execution["execution_id"], "mlflow.runName": name},
        )
        parent_id = created.info.run_id
    reached("parent")
    params = {_name(row["name"]): row["value"] for row in read_summary(folder, "params")}
    _log(tracking, parent_id, own, ended, tags, params)
    reached("parent logged")
    if execution["agent"] != "gateway":
        _project_runs(tracking, parent_id, execution, metrics, trials)
    with tempfile.TemporaryDirectory(prefix="xspec-artifacts-") as made:
        write_artifacts(store, folder, Path(made), include_protected=include_protected)
        if page is not None:
            (Path(made) / "report.html").write_text(page(store, folder), encoding="utf-8")
        reached("artifacts made")
        tracking.client.log_artifacts(parent_id, made)
    reached("artifacts")
    tracking.client.set_terminated(parent_id, _status(execution), ended)
    reached("ended")
    tracking.client.set_tag(parent_id, MARK_TAG, mark)


def _project_runs(
    tracking: Tracking,
    parent_id: str,
    execution: Mapping[str, Any],
    metrics: list[dict[str, Any]],
    trials: list[dict[str, Any]],
) -> None:
    there = {
        run.data.tags[RUN_TAG]: run.info.run_id
        for run in _find(tracking, RUN_OF_TAG, execution["execution_id"])
    }
    for run in range(execution["k"]):
        mine = [trial for trial in trials if trial["run"] == run]
        began = _milliseconds(min((t["started_at"] for t in mine), default=execution["began_at"]))
        ended = _milliseconds(max((t["ended_at"] for t in mine), default=execution["began_at"]))
        name = f"{execution['arm'] or execution['spec_id'][:9]} run {run}"
        run_id = there.get(str(run))
        if run_id is None:
            first = {
                RUN_OF_TAG: execution["execution_id"],
                RUN_TAG: str(run),
                "mlflow.parentRunId": parent_id,
            }
            created = tracking.client.create_run(
                tracking.experiment_id, start_time=began, run_name=name, tags=first | {"mlflow.runName": name}
            )
            run_id = created.info.run_id
        reached(f"run {run}")
        own = {row["name"]: row["value"] for row in metrics if row["run"] == run}
        _log(tracking, run_id, own, ended, {"arm": execution["arm"] or "", "spec_id": execution["spec_id"]})
        reached(f"run {run} logged")
        status = "FINISHED" if len(mine) == execution["tasks"] else "KILLED"
        tracking.client.set_terminated(run_id, status, ended)


def _log(
    tracking: Tracking,
    run_id: str,
    metrics: Mapping[str, float],
    at: int,
    tags: Mapping[str, str],
    params: Mapping[str, str] | None = None,
) -> None:
    """Logs everything at once. A point is the same at every repetition, and MLflow keeps equal points once."""
    from mlflow.entities import Metric, Param, RunTag

    tracking.client.log_batch(
        run_id,
        metrics=[Metric(name, value, at, 0) for name, value in metrics.items()],
        params=[Param(name, value) for name, value in (params or {}).items()],
        tags=[RunTag(name, value) for name, value in tags.items()],
        synchronous=True,
    )


def _find(tracking: Tracking, tag: str, value: str) -> "list[Run]":
    from mlflow.entities import ViewType

    found = tracking.client.search_runs(
        [tracking.experiment_id], f"tags.`{tag}` = '{value}'", run_view_type=ViewType.ALL, max_results=50_000
    )
    return list(found)


def _tags(execution: Mapping[str, Any]) -> dict[str, str]:
    return {
        EXECUTION_TAG: execution["execution_id"],
        "arm": execution["arm"] or "",
        "spec_id": execution["spec_id"],
        "condition_id": execution["condition_id"],
        "benchmark": f"{execution['benchmark']} {execution['version']} {execution['split']}",
        "model": ", ".join(execution["models"]),
        "guide": execution["guide"],
        "route": execution["route"],
        "simulated": "yes" if execution["simulated"] else "no",
        "protected": "yes" if execution["protected"] else "no",
    }


def _status(execution: Mapping[str, Any]) -> str:
    """MLflow's word for it. A gateway fails by its command or its route; what it recorded of them is whole."""
    if not execution["finished"] or execution["gateway_ended"] == "interrupted":
        return "KILLED"
    return "FAILED" if execution["gateway_ended"] in ("failed", "stopped") else "FINISHED"


def _number(store: Store, folder: ExecutionFolder) -> int:
    """Which execution of its spec this is, from 1."""
    ids = [other.path.name for other in executions_of(store, folder.info.spec_id)]
    return ids.index(folder.path.name) + 1


def _milliseconds(time: datetime) -> int:
    return int(time.replace(tzinfo=UTC).timestamp() * 1000)


def _name(field: str) -> str:
    """A field's path in the characters and length that MLflow takes."""
    return _FOREIGN.sub("_", field)[:250]
