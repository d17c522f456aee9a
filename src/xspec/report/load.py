"""From the store to execution records."""

import shlex
from collections.abc import Sequence

from xspec.records.executions import ExecutionFolder, executions_of
from xspec.report.execution_record import ExecutionRecord
from xspec.spec.store import Store


def load_record(store: Store, folder: ExecutionFolder) -> ExecutionRecord:
    """One execution as its journals tell it."""
    info = folder.info
    spec = store.spec(info.spec_id)
    progress = folder.progress()
    trials = list(progress.trials.values())
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
        superseded=progress.superseded,
        abandoned_attempts=progress.abandoned_attempts,
        tokens_outside_trials=progress.tokens - sum(t.prompt_tokens + t.completion_tokens for t in trials),
        continue_with=shlex.join(["python", "-m", "xspec", *info.command]) if info.command else None,
        lock_changes=_lock_changes(folder),
    )


def load_records(
    store: Store,
    *,
    spec_ids: Sequence[str] | None = None,
    benchmark: str | None = None,
    last: int | None = None,
) -> list[ExecutionRecord]:
    """Records of the stored executions, oldest first: all, or those of some specs, of one benchmark, the newest few."""
    folders = [f for f in executions_of(store) if spec_ids is None or f.info.spec_id in spec_ids]
    if benchmark is not None:
        folders = [f for f in folders if store.spec(f.info.spec_id).benchmark.kind == benchmark]
    return [load_record(store, folder) for folder in (folders[-last:] if last else folders)]


def _lock_changes(folder: ExecutionFolder) -> list[str]:
    stints = folder.stints()
    if len(stints) < 2:
        return []
    first = folder.lock(stints[0])
    changes: list[str] = []
    for stint in stints[1:]:
        later = folder.lock(stint)
        names = [n for n in first["must_match"] if first["must_match"][n] != later["must_match"][n]]
        changes.extend(f"stint {stint}: {name} differs" for name in names)
    return changes
