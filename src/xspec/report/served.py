"""What came back, counted: the usable replies of an execution by what they reveal of their origin."""

from collections import Counter

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from xspec.records.executions import ExecutionFolder
from xspec.records.parquet import read_rows
from xspec.route.verification import AGGREGATOR_ID, Revealed, kinds_of, revealed

_TOKENS = ["prompt_tokens", "completion_tokens"]
_COLUMNS = ["member", "served_model", "upstream", "fingerprint", "request_ids", "drift", *_TOKENS]
_KEYS = ["member", "served_model", "upstream", "fingerprint", "aggregated", "counted", "drift"]


def replies_in_parquet(folder: ExecutionFolder) -> Counter[Revealed]:
    """From the Parquet set, by columns: an execution may have a million attempts."""
    attempts = read_rows(folder, "attempts", [*_COLUMNS, "error", "ended_at"])
    usable = attempts.filter(pc.and_(pc.is_null(attempts["error"]), pc.is_valid(attempts["ended_at"])))
    table = pa.table(
        {name: usable[name] for name in _KEYS[:4]}
        | {
            "aggregated": pc.match_substring(usable["request_ids"], AGGREGATOR_ID),
            "counted": pc.or_(*(pc.is_valid(usable[name]) for name in _TOKENS)),
            "drift": pc.binary_join(usable["drift"], "\n"),
        }
    )
    counted: Counter[Revealed] = Counter()
    for row in table.group_by(_KEYS).aggregate([([], "count_all")]).to_pylist():
        notes = (row["drift"] or "").split("\n") if row["drift"] else []
        counted[Revealed(**{name: row[name] for name in _KEYS[:6]}, drift=kinds_of(notes))] += row[
            "count_all"
        ]
    return counted


def replies_in_journal(folder: ExecutionFolder) -> Counter[Revealed]:
    """The same from the journals."""
    counted: Counter[Revealed] = Counter()
    for row in folder.rows("attempt"):
        reply = revealed(row)
        if reply is not None:
            counted[reply] += 1
    return counted
