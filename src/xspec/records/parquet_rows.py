"""Journal rows as rows of the Parquet tables."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from xspec.records.rows import OUTCOMES

Row = dict[str, Any]
TrialPlace = tuple[int, str, int]


@dataclass(slots=True)
class StintCounts:
    """What a report needs beside the trial rows, so that it need not read the attempts.

    `abandoned_attempts` are those of takes that never came to a trial row, `tokens` those of all attempts. `replies`
    are usable ones, `uncounted` those of them that did not say how many tokens they took.
    """

    trials: int = 0
    attempts: int = 0
    abandoned_attempts: int = 0
    tokens: int = 0
    replies: int = 0
    uncounted: int = 0

    @property
    def known_tokens(self) -> int | None:
        """None if none of the replies said."""
        return None if self.uncounted and self.uncounted == self.replies else self.tokens


@dataclass(slots=True)
class _Said:
    """What the usable replies of one trial said of their tokens."""

    replies: int = 0
    prompt: int = 0
    completion: int = 0
    uncounted: int = 0


@dataclass(slots=True)
class StintRows:
    """Turns the journal rows of one stint, fed in order, into (table, row) pairs.

    An attempt becomes one row when it returns; those that never did come out of `unreturned` at the end.
    """

    origin: Mapping[str, Any]
    strata: Mapping[str, Mapping[str, Any]]
    counts: StintCounts = field(default_factory=StintCounts)
    _open: dict[tuple[Any, ...], Row] = field(default_factory=dict)
    _begun: dict[TrialPlace, int] = field(default_factory=dict)
    _said: dict[TrialPlace, _Said] = field(default_factory=dict)

    def feed(self, row: Row) -> Iterator[tuple[str, Row]]:
        kind = row["kind"]
        place = (row["run"], row["task"], row["take"])
        if kind == "attempt_started":
            self.counts.attempts += 1
            self._begun[place] = self._begun.get(place, 0) + 1
            self._open[_attempt_key(row)] = row
        elif kind == "attempt":
            self.counts.tokens += (row["prompt_tokens"] or 0) + (row["completion_tokens"] or 0)
            if row["error"] is None:
                self._count_reply(place, row)
            yield "attempts", self._attempt(self._open.pop(_attempt_key(row), None), row)
        elif kind == "step":
            yield "steps", self._step(row)
        elif kind == "trial":
            self.counts.trials += 1
            self._begun.pop(place, None)
            yield "trials", self._trial(row, self._said.pop(place, _Said()))
        elif kind == "call":
            yield "calls", self._call(row)

    def unreturned(self) -> Iterator[tuple[str, Row]]:
        """Rows of the attempts that never returned. Call it once, after the last row."""
        for started in self._open.values():
            yield "attempts", self._attempt(started, None)
        self.counts.abandoned_attempts = sum(self._begun.values())

    def _count_reply(self, place: TrialPlace, row: Row) -> None:
        said = self._said.setdefault(place, _Said())
        prompt, completion = row["prompt_tokens"] is not None, row["completion_tokens"] is not None
        said.replies += 1
        said.prompt += prompt
        said.completion += completion
        said.uncounted += not (prompt or completion)
        self.counts.replies += 1
        self.counts.uncounted += not (prompt or completion)

    def _trial(self, row: Row, said: _Said) -> Row:
        if row["outcome"] not in OUTCOMES:
            raise ValueError(f"no outcome is called {row['outcome']!r}")
        task = self.strata.get(row["task"], {})
        verdict = row["verdict"]
        return {
            **self.origin,
            **row,
            "cluster": task.get("cluster"),
            "stratum": task.get("stratum"),
            "difficulty": task.get("difficulty"),
            "verdict": None if verdict is None else _json(verdict),
            "prompt_tokens": None if said.replies and not said.prompt else row["prompt_tokens"],
            "completion_tokens": None if said.replies and not said.completion else row["completion_tokens"],
            "replies_uncounted": said.uncounted,
            "started_at": microseconds(row["started_at"]),
            "ended_at": microseconds(row["ended_at"]),
        }

    def _step(self, row: Row) -> Row:
        return {
            **self.origin,
            **row,
            "at": microseconds(row["at"]),
            "tools": [name for entry in row["actions"] for name in _tools(entry)],
            "failed_actions": sum(bool(entry["error"]) for entry in row["actions"]),
            "actions": _json(row["actions"]),
            "added": _json(row["added"]),
        }

    def _call(self, row: Row) -> Row:
        return {
            **self.origin,
            **row,
            "started_at": microseconds(row["at"]),
            "changes": len(row["changes"]),
            "contradicted": [change["field"] for change in row["changes"] if change.get("asked") is not None],
            "others": len(row["others"]),
        }

    def _attempt(self, started: Row | None, ended: Row | None) -> Row:
        merged = {**self.origin, **(started or {}), **(ended or {})}
        merged["started_at"] = None if started is None else microseconds(started["at"])
        merged["ended_at"] = None if ended is None else microseconds(ended["at"])
        merged["request_ids"] = _json(merged.get("request_ids") or {})
        merged.setdefault("drift", [])
        return merged


def _tools(entry: Row) -> list[str]:
    """The names of what an action called: the tool, the APIs of a block of code, or `code` if it called none."""
    if entry["action"] is None:
        return []
    return [call["name"] for call in entry.get("calls", ())] or [entry["action"].get("name", "code")]


def microseconds(seconds: float) -> int:
    """Wall-clock seconds as the integer a Parquet timestamp holds."""
    return round(seconds * 1_000_000)


def _attempt_key(row: Row) -> tuple[Any, ...]:
    return row["run"], row["task"], row["take"], row["step"], row["call"], row["attempt"]


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()
