"""From the store to execution records."""

import os
import shlex
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from functools import lru_cache
from typing import Any

import orjson
import pyarrow as pa  # type: ignore[import-untyped]

from xspec.records.executions import ExecutionFolder, executions_of
from xspec.records.parquet import is_current, journal_sizes, project_parquet, read_rows, stint_counts
from xspec.records.parquet_rows import StintCounts
from xspec.records.rows import Trial
from xspec.report.execution_record import ExecutionRecord, chosen_of
from xspec.report.gateway import GatewayFigures, gateway_figures, is_gateway
from xspec.report.served import replies_in_journal, replies_in_parquet
from xspec.report.steps import load_steps
from xspec.route.verification import verify
from xspec.spec.models import ExperimentSpec
from xspec.spec.store import Store


def load_record(store: Store, folder: ExecutionFolder, *, steps: bool = True) -> ExecutionRecord:
    """One execution as its Parquet sets tell it, or its journals where they say more; without its steps if told so."""
    info = folder.info
    spec = store.spec(info.spec_id)
    projected = is_current(folder, journal_sizes(folder))
    if projected:
        trials = _current_trials(folder)
        counts = stint_counts(folder)
        replies = replies_in_parquet(folder)
    else:
        progress = folder.progress()
        trials = list(progress.trials.values())
        counts = StintCounts(
            trials=len(trials) + progress.superseded,
            attempts=progress.attempts,
            abandoned_attempts=progress.abandoned_attempts,
            tokens=progress.tokens,
        )
        replies = replies_in_journal(folder)
    locks = folder.locks()
    complete = len(trials) == spec.k * len(spec.benchmark.tasks)
    return ExecutionRecord(
        execution_id=info.execution_id,
        spec=spec,
        spec_id=info.spec_id,
        condition_id=spec.condition_id,
        arm=info.arm,
        started_at=info.began_at,
        ended_at=max((trial.ended_at for trial in trials), default=info.began_at) if complete else None,
        trials=trials,
        superseded=counts.trials - len(trials),
        abandoned_attempts=counts.abandoned_attempts,
        tokens_outside_trials=counts.tokens - sum(t.prompt_tokens + t.completion_tokens for t in trials),
        continue_with=shlex.join(["python", "-m", "xspec", *info.command]) if info.command else None,
        lock_changes=_lock_changes(locks),
        lock_notes=_lock_notes(locks),
        replies=replies.total(),
        uncounted=sum(n for reply, n in replies.items() if not reply.counted),
        verifications=verify(spec.route, replies),
        replayed=folder.replayed(),
        task_info=_task_info(store, spec),
        locks=locks,
        steps=load_steps(folder, trials, from_journal=not projected) if steps else None,
        guide=_guide(store, spec),
    )


def load_records(
    store: Store,
    *,
    spec_ids: Sequence[str] | None = None,
    benchmark: str | None = None,
    last: int | None = None,
) -> list[ExecutionRecord]:
    """Records of the stored executions, oldest first: all, or those of some specs, of one benchmark, the newest few.

    What killed processes left is brought into Parquet first, where the store can be written. Executions of a gateway
    are no arms and left out: see load_gateways.
    """
    chosen = _chosen(store, spec_ids, benchmark, last)
    folders = [folder for folder in chosen if not is_gateway(store, folder)]
    if os.access(store.path, os.W_OK):
        for folder in folders:
            project_parquet(store, folder)
    records = [load_record(store, folder, steps=False) for folder in folders]
    by_spec: dict[str, list[int]] = defaultdict(list)
    for i in sorted(range(len(records)), key=lambda i: (records[i].started_at, records[i].execution_id)):
        by_spec[records[i].spec_id].append(i)
    # Steps are by far the most of it, and only those of the execution that gives a spec's figures are shown.
    for places in by_spec.values():
        place = places[chosen_of([records[i] for i in places])]
        projected = is_current(folders[place], journal_sizes(folders[place]))
        found = load_steps(folders[place], records[place].trials, from_journal=not projected)
        records[place] = replace(records[place], steps=found)
    return records


def load_gateways(
    store: Store,
    *,
    spec_ids: Sequence[str] | None = None,
    benchmark: str | None = None,
    last: int | None = None,
) -> list[GatewayFigures]:
    """What the gateway executions among the same ones come to."""
    chosen = _chosen(store, spec_ids, benchmark, last)
    return [gateway_figures(store, folder) for folder in chosen if is_gateway(store, folder)]


def _chosen(
    store: Store, spec_ids: Sequence[str] | None, benchmark: str | None, last: int | None
) -> list[ExecutionFolder]:
    folders = [f for f in executions_of(store) if spec_ids is None or f.info.spec_id in spec_ids]
    if benchmark is not None:
        folders = [f for f in folders if store.spec(f.info.spec_id).benchmark.kind == benchmark]
    return folders[-last:] if last else folders


_TRIAL_COLUMNS = [field.name for field in fields(Trial) if field.name != "kind"]


def _current_trials(folder: ExecutionFolder) -> list[Trial]:
    """The trial of the highest take of each (run, task). By columns: a store may hold a hundred thousand trials."""
    table = read_rows(folder, "trials", _TRIAL_COLUMNS)
    columns = {name: table[name] for name in _TRIAL_COLUMNS}
    values = {name: column.to_pylist() for name, column in columns.items() if not name.endswith("_at")}
    for name in ("started_at", "ended_at"):
        values[name] = [time / 1e6 for time in columns[name].cast(pa.int64()).to_pylist()]
    for name in ("prompt_tokens", "completion_tokens"):
        values[name] = [count or 0 for count in values[name]]  # what no reply said is told by `uncounted`
    verdicts = {
        text: orjson.loads(text) for text in set(values["verdict"]) if text is not None
    }  # most are alike
    values["verdict"] = [verdicts.get(text) for text in values["verdict"]]
    current: dict[tuple[int, str], Trial] = {}
    for row in zip(*(values[name] for name in _TRIAL_COLUMNS), strict=True):
        trial = Trial(**dict(zip(_TRIAL_COLUMNS, row, strict=True)))
        earlier = current.get((trial.run, trial.task))
        if earlier is None or earlier.take < trial.take:
            current[trial.run, trial.task] = trial
    return list(current.values())


def _task_info(store: Store, spec: ExperimentSpec) -> dict[str, dict[str, Any]]:
    """From the manifest. A store that lost it still has a report, without clusters and instructions."""
    manifest = spec.benchmark.manifest
    return _rows_of(store, manifest) if store.blob_path(manifest).exists() else {}


def _guide(store: Store, spec: ExperimentSpec) -> dict[str, Any] | None:
    """Rules and map of a guided spec. A store that lost them still has a report, without the guide's scope."""
    if spec.guide.kind == "none" or not store.blob_path(spec.guide.digest).exists():
        return None
    guide: dict[str, Any] = store.json_blob(spec.guide.digest)
    return guide


@lru_cache(maxsize=8)
def _rows_of(store: Store, manifest: str) -> dict[str, dict[str, Any]]:
    rows = store.json_blob(manifest)["tasks"]
    names = ("cluster", "cluster_tasks", "stratum", "difficulty", "instruction")
    return {row["id"]: {name: row.get(name) for name in names} for row in rows}


def _lock_changes(locks: Sequence[Mapping[str, Any]]) -> list[str]:
    """What the user accepted to be different from the first stint's lock."""
    stints = [(number, lock["must_match"]) for number, lock in enumerate(locks, start=1) if lock]
    return [
        f"stint {number}: {name} differs"
        for number, later in stints[1:]
        for name in stints[0][1]
        if stints[0][1][name] != later[name]
    ]


def _lock_notes(locks: Sequence[Mapping[str, Any]]) -> list[str]:
    """What else the locks say, or no longer say, that bears on the figures."""
    notes = []
    for number, lock in enumerate(locks, start=1):
        if not lock:
            notes.append(f"the lock of stint {number} was deleted or spoilt: what it ran in is not known")
        elif lock.get("pacing_alone"):
            notes.append(
                f"stint {number} paced itself without counting other processes of the same key: "
                f"{lock['pacing_alone']}"
            )
    return notes
