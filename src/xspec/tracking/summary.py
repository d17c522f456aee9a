"""The tables of one execution as a whole, beside its Parquet sets: executions, params, metrics.

executions/ex-…/parquet/
    executions.parquet  params.parquet  metrics.parquet
    summary.json        the journal sizes they were made from
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from xspec.analysis.consistency import Consistency
from xspec.benchmarks.protected import protection_of
from xspec.errors import StoreError
from xspec.records.executions import ExecutionFolder, ExecutionInfo
from xspec.records.parquet import (
    current_trials,
    journal_sizes,
    parquet_folder,
    project_parquet,
    projecting,
    record_batch,
    stint_counts,
    strata,
    whole_parquet,
)
from xspec.records.parquet_rows import microseconds
from xspec.spec.models import ExperimentSpec
from xspec.spec.store import Store, write_whole
from xspec.tracking.figures import execution_figures, figures_of, goal_figures, run_figures
from xspec.tracking.flat_spec import flat_spec
from xspec.tracking.gateway_metrics import closed_row, gateway_metrics, spanned
from xspec.tracking.summary_columns import SUMMARY_LAYOUT, SUMMARY_TABLES


def project_tables(store: Store, folder: ExecutionFolder) -> bool:
    """Brings every Parquet table of the execution up to date; returns whether anything was written.

    An execution without a journal has nothing to say yet: its process may still take its folder away.
    """
    sizes = journal_sizes(folder)
    written = project_parquet(store, folder)
    if not sizes or is_summed_up(folder, sizes):
        return written
    with projecting(folder) as target:
        for name, rows in _tables(store, folder).items():
            with whole_parquet(target / f"{name}.parquet", SUMMARY_TABLES[name]) as writer:
                writer.write_batch(record_batch(rows, SUMMARY_TABLES[name]))
        mark = {"layout": SUMMARY_LAYOUT, "journal_bytes": sizes}
        write_whole(target / "summary.json", json.dumps(mark).encode())
    return True


def is_summed_up(folder: ExecutionFolder, sizes: Mapping[int, int]) -> bool:
    """Whether the tables were made from journals of these sizes. Reads one small file."""
    try:
        mark = json.loads((parquet_folder(folder) / "summary.json").read_bytes())
        made_from = {int(stint): size for stint, size in mark["journal_bytes"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False
    return bool(mark["layout"] == SUMMARY_LAYOUT and made_from == dict(sizes))


def read_summary(folder: ExecutionFolder, table: str) -> list[dict[str, Any]]:
    """Rows of one of the tables; project them first."""
    path = parquet_folder(folder) / f"{table}.parquet"
    try:
        with pq.ParquetFile(path) as file:
            rows: list[dict[str, Any]] = file.read().to_pylist()
    except (OSError, pa.ArrowException):
        raise StoreError(
            f"{path} is missing or was changed; delete {path.parent} and it is made again"
        ) from None
    return rows


def _tables(store: Store, folder: ExecutionFolder) -> dict[str, list[dict[str, Any]]]:
    info = folder.info
    spec = store.spec(info.spec_id)
    params = [
        {"execution_id": info.execution_id, "name": name, "value": value}
        for name, value in flat_spec(spec).items()
    ]
    if spec.agent.kind == "gateway":
        return {
            "executions": [_gateway(folder, spec)],
            "params": params,
            "metrics": _metrics(info, [(None, gateway_metrics(folder))]),
        }
    trials = current_trials(folder)
    estimates = figures_of(spec, trials)
    figures = estimates.figures
    goals, run_goals = goal_figures(spec, trials, strata(store, spec.benchmark.manifest))
    metrics: list[tuple[int | None, dict[str, float]]] = [
        (None, execution_figures(estimates, trials, stint_counts(folder)) | goals)
    ]
    metrics += [(run, run_figures(spec, run, trials) | run_goals[run]) for run in range(spec.k)]
    return {
        "executions": [_execution(info, spec, trials, figures, len(folder.stints()))],
        "params": params,
        "metrics": _metrics(info, metrics),
    }


def _metrics(
    info: ExecutionInfo, metrics: Sequence[tuple[int | None, Mapping[str, float]]]
) -> list[dict[str, Any]]:
    return [
        {"execution_id": info.execution_id, "run": run, "name": name, "value": value}
        for run, named in metrics
        for name, value in named.items()
    ]


def _execution(
    info: ExecutionInfo,
    spec: ExperimentSpec,
    trials: list[dict[str, Any]],
    figures: Consistency,
    stints: int,
) -> dict[str, Any]:
    return _identity(info, spec) | {
        "finished": figures.trials.missing == 0,
        "stints": stints,
        "started_at": min((trial["started_at"] for trial in trials), default=None),
        "ended_at": max((trial["ended_at"] for trial in trials), default=None),
        "mean_at_k_pct": figures.mean_at_k_pct,
        "pass_hat_k_pct": figures.pass_hat_k_pct,
        "gap_pp": figures.gap_pp,
        "gap_pp_invalid_as_fail": figures.gap_pp_invalid_as_fail,
    }


def _gateway(folder: ExecutionFolder, spec: ExperimentSpec) -> dict[str, Any]:
    """It has no trials, hence no figures; it is finished if it was closed in order, all its calls being over."""
    began, ended = spanned(folder)
    closed = closed_row(folder)
    return _identity(folder.info, spec) | {
        "finished": closed is not None,
        "gateway_ended": None if closed is None else closed.ended,
        "stints": len(folder.stints()),
        "started_at": began,
        "ended_at": ended if closed is None else microseconds(closed.at),
    }


def _identity(info: ExecutionInfo, spec: ExperimentSpec) -> dict[str, Any]:
    return {
        "execution_id": info.execution_id,
        "spec_id": info.spec_id,
        "condition_id": spec.condition_id,
        "arm": info.arm,
        "benchmark": spec.benchmark.kind,
        "version": spec.benchmark.version,
        "split": spec.benchmark.split,
        "agent": spec.agent.kind,
        "guide": spec.guide.kind,
        "route": spec.route.mode,
        "members": [member.name for member in spec.route.members],
        "models": [member.model for member in spec.route.members],
        "simulated": any(member.kind == "rehearsal" for member in spec.route.members),
        "protected": protection_of(spec.benchmark.kind) is not None,
        "k": spec.k,
        "tasks": len(spec.benchmark.tasks),
        "began_at": microseconds(info.began_at),
    }
