"""The figures of a gateway's execution: it has calls and no trials, so it has no score."""

from collections import Counter
from typing import Any

import pyarrow.compute as pc  # type: ignore[import-untyped]

from xspec.records.executions import ExecutionFolder
from xspec.records.parquet import read_rows, stint_counts
from xspec.records.rows import Closed

_ENDS = ("answered", "refused", "failed", "stopped", "broken", "gone")
_PLACE = ["run", "task", "take", "step", "call"]


def gateway_metrics(folder: ExecutionFolder) -> dict[str, float]:
    """By the names they have in MLflow and in `metrics`, from the projected tables."""
    attempts = read_rows(
        folder, "attempts", [*_PLACE, "ended_at", "waited_s", "prompt_tokens", "completion_tokens"]
    )
    calls = read_rows(folder, "calls", ["again", "ended", "streamed", "contradicted", "drift"])
    counts = stint_counts(folder)
    again, ended = Counter(calls["again"].to_pylist()), Counter(calls["ended"].to_pylist())
    named: dict[str, float | None] = {
        "calls": len(calls),
        **{f"calls_{end}": ended[end] for end in _ENDS},
        "calls_streamed": _sum(calls["streamed"]),
        "calls_contradicting": sum(map(bool, calls["contradicted"].to_pylist())),
        "calls_drifted": sum(map(bool, calls["drift"].to_pylist())),
        "harness_retries": again["retry"],
        "harness_repeats": again["repeat"],
        "attempts": counts.attempts,
        "retry_count": counts.attempts - len(attempts.group_by(_PLACE).aggregate([])),
        "unreturned_attempts": attempts["ended_at"].null_count,
        "prompt_tokens": _of(pc.sum, attempts["prompt_tokens"]),
        "completion_tokens": _of(pc.sum, attempts["completion_tokens"]),
        "total_tokens": counts.known_tokens,
        "replies_uncounted": counts.uncounted,
        "waited_s": _sum(attempts["waited_s"]),
    }
    return {name: float(value) for name, value in named.items() if value is not None}


def closed_row(folder: ExecutionFolder) -> Closed | None:
    """How a gateway ended; None if it was killed, or is still at work."""
    return next((Closed(**row) for row in folder.rows("closed")), None)


def spanned(folder: ExecutionFolder) -> tuple[Any, Any]:
    """When its first call came and its last attempt ended, as the tables have times; None where there was none."""
    calls, attempts = (
        read_rows(folder, "calls", ["started_at"]),
        read_rows(folder, "attempts", ["started_at", "ended_at"]),
    )
    begun = [
        t for t in (_of(pc.min, calls["started_at"]), _of(pc.min, attempts["started_at"])) if t is not None
    ]
    ended = [
        t for t in (_of(pc.max, calls["started_at"]), _of(pc.max, attempts["ended_at"])) if t is not None
    ]
    return min(begun, default=None), max(ended, default=None)


def _sum(column: Any) -> float:
    return float(pc.sum(column).as_py() or 0)


def _of(what: Any, column: Any) -> Any:
    return what(column).as_py()
