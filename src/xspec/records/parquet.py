"""From the journal to Parquet: one set of files a stint, written whole, and again only if the journal has grown.

executions/ex-…/parquet/
    trials-1.parquet  steps-1.parquet  attempts-1.parquet  calls-1.parquet      stint 1
    stints.json         how much of each journal the sets were made from, and counts
"""

import functools
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from xspec.errors import StoreError
from xspec.left_out import left_out
from xspec.records.executions import ExecutionFolder
from xspec.records.journal import read_journal, rows_in_form
from xspec.records.parquet_columns import PARQUET_LAYOUT, STINT_TABLES
from xspec.records.parquet_lock import held
from xspec.records.parquet_rows import Row, StintCounts, StintRows
from xspec.spec.store import Store, write_whole

with left_out("pandas"):
    # At its first array PyArrow asks, once and for all, whether it could be given pandas' columns: 0.3 s.
    pa.array(())

_ROWS_AT_ONCE = 20_000
_LOCK = ".lock"


def parquet_folder(folder: ExecutionFolder) -> Path:
    return folder.path / "parquet"


def journal_sizes(folder: ExecutionFolder) -> dict[int, int]:
    """Bytes of each stint's journal as it is now. What was made from journals of these sizes is up to date."""
    return {stint: folder.journal_path(stint).stat().st_size for stint in folder.stints()}


def is_current(folder: ExecutionFolder, sizes: Mapping[int, int]) -> bool:
    """Whether the Parquet sets say all that journals of these sizes do. Reads one small file."""
    return _sizes_of(_projected(folder)) == dict(sizes)


def project_parquet(store: Store, folder: ExecutionFolder) -> bool:
    """Writes what is missing or behind; returns whether anything was.

    Safe to call at any time and from several processes at once, also while a stint is still being written.
    Raises StoreError if a journal was changed or the store cannot be written.
    """
    if is_current(folder, journal_sizes(folder)):
        return False
    with projecting(folder) as target:
        done = _projected(folder)
        for stint, size in journal_sizes(folder).items():
            if done.get(str(stint), {}).get("journal_bytes") != size:
                counts = _write_set(store, folder, stint)
                done[str(stint)] = {"journal_bytes": size, **asdict(counts)}
                mark = {"layout": PARQUET_LAYOUT, "stints": done}
                write_whole(target / "stints.json", json.dumps(mark, indent=1).encode())
    return True


@contextmanager
def projecting(folder: ExecutionFolder) -> Iterator[Path]:
    """The execution's Parquet folder, held by this process alone and clear of what a killed one left half-written."""
    target = parquet_folder(folder)
    try:
        target.mkdir(exist_ok=True)
        with held(target / _LOCK):
            for left in target.glob(".*"):
                if left.name != _LOCK:
                    left.unlink()
            yield target
    except OSError as error:
        raise StoreError(
            f"{target} cannot be written ({error.strerror}); free space, or copy the store to where it can be"
        ) from None


def stint_counts(folder: ExecutionFolder) -> StintCounts:
    """Counts over all projected stints."""
    stints = [{k: v for k, v in s.items() if k != "journal_bytes"} for s in _projected(folder).values()]
    total = StintCounts()
    for stint in stints:
        total.trials += stint["trials"]
        total.attempts += stint["attempts"]
        total.abandoned_attempts += stint["abandoned_attempts"]
        total.tokens += stint["tokens"]
        total.replies += stint["replies"]
        total.uncounted += stint["uncounted"]
    return total


def read_rows(folder: ExecutionFolder, table: str, columns: list[str] | None = None) -> pa.Table:
    """Rows of `table` over all projected stints, in order."""
    schema = STINT_TABLES[table]
    parts = []
    for stint in sorted(map(int, _projected(folder))):
        path = parquet_folder(folder) / f"{table}-{stint}.parquet"
        try:
            with pq.ParquetFile(path) as file:
                parts.append(file.read(columns))
        except (OSError, pa.ArrowException):
            raise StoreError(
                f"{path} is missing or was changed; delete {path.parent} and it is made again"
            ) from None
    if not parts:
        empty = schema.empty_table()
        return empty.select(columns) if columns is not None else empty
    return pa.concat_tables(parts)


def current_trials(folder: ExecutionFolder) -> list[Row]:
    """The current trial row of each (run, task): the one of the highest take. Ordered as first finished."""
    current: dict[tuple[int, str], Row] = {}
    for row in read_rows(folder, "trials").to_pylist():
        place = (row["run"], row["task"])
        if place not in current or current[place]["take"] < row["take"]:
            current[place] = row
    return list(current.values())


@contextmanager
def whole_parquet(path: Path, schema: pa.Schema) -> Iterator[pq.ParquetWriter]:
    """A writer whose file appears at `path` when the context ends, all of it or nothing."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        os.chmod(temporary, 0o644)
        with os.fdopen(handle, "wb") as file:
            with pq.ParquetWriter(file, schema, compression="zstd") as writer:
                yield writer
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def record_batch(rows: Iterable[Mapping[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    """Rows as a batch of exactly this schema; what a row does not have is null."""
    rows = list(rows)
    arrays = [pa.array([row.get(field.name) for row in rows], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _write_set(store: Store, folder: ExecutionFolder, stint: int) -> StintCounts:
    info = folder.info
    origin = {
        "execution_id": info.execution_id,
        "spec_id": info.spec_id,
        "arm": info.arm,
        "stint": stint,
    }
    rows = StintRows(origin, strata(store, store.spec(info.spec_id).benchmark.manifest))
    with ExitStack() as stack:
        writers = {
            name: stack.enter_context(
                whole_parquet(parquet_folder(folder) / f"{name}-{stint}.parquet", schema)
            )
            for name, schema in STINT_TABLES.items()
        }
        waiting: dict[str, list[Row]] = {name: [] for name in STINT_TABLES}

        def put(table: str, row: Row) -> None:
            waiting[table].append(row)
            if len(waiting[table]) >= _ROWS_AT_ONCE:
                flush(table)

        def flush(table: str) -> None:
            writers[table].write_batch(record_batch(waiting[table], STINT_TABLES[table]))
            waiting[table].clear()

        kinds = ("attempt_started", "attempt", "step", "trial", "call")
        journal = folder.journal_path(stint)
        with rows_in_form(journal):
            for journal_row in read_journal(journal, kinds):
                for table, row in rows.feed(journal_row):
                    put(table, row)
            for table, row in rows.unreturned():
                put(table, row)
            for table in waiting:
                flush(table)
    return rows.counts


def _projected(folder: ExecutionFolder) -> dict[str, dict[str, int]]:
    """What `stints.json` says of each stint; nothing if it is missing, broken or of another layout."""
    try:
        mark = json.loads((parquet_folder(folder) / "stints.json").read_bytes())
        return dict(mark["stints"]) if mark["layout"] == PARQUET_LAYOUT else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _sizes_of(projected: Mapping[str, Mapping[str, int]]) -> dict[int, int]:
    return {int(stint): counts["journal_bytes"] for stint, counts in projected.items()}


def strata(store: Store, manifest: str) -> dict[str, dict[str, Any]]:
    """Cluster and its size, stratum and difficulty by task of the manifest; empty if the store has lost that."""
    path = store.blob_path(manifest)
    return _strata_of(path) if path.exists() else {}


@functools.lru_cache(maxsize=16)
def _strata_of(path: Path) -> dict[str, dict[str, Any]]:
    tasks = json.loads(path.read_bytes())["tasks"]
    return {
        row["id"]: {name: row.get(name) for name in ("cluster", "cluster_tasks", "stratum", "difficulty")}
        for row in tasks
    }
