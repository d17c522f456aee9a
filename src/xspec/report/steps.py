"""What the trials of an execution did, step by step: for trajectories, attribution and the views of tasks.

Events by the rule of docs/statistics.md: an attempt that failed is a *hidden* event of its call, the agent never learns
of it. *Visible* is what the agent was told: tool arguments that arrived cut off, or a tool that ran out of time. An
ordinary error of a tool is no infrastructure event: the agent asked for it.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from xspec.analysis.trajectory import Event, StepTaken, ToolCall
from xspec.records.executions import ExecutionFolder
from xspec.records.parquet import read_rows
from xspec.records.rows import Trial
from xspec.spec.canonical import canonical_bytes

_STEP_COLUMNS = ["run", "task", "take", "step", "actions", "added"]
_ATTEMPT_COLUMNS = ["run", "task", "take", "step", "call", "attempt", "member", "error", "drift"]
_ATTEMPT_COLUMNS += ["served_model", "upstream", "fingerprint"]
_TIMED_OUT = ("timed out", "time-out", "timeout")


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One step. `calls` are the tool calls asked for, `unread` those whose arguments did not parse.

    `said` is the reply's text, `told` what came back by call.
    """

    taken: StepTaken
    unread: tuple[bool, ...]
    said: str
    told: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DriftEvent:
    """One attempt whose reply was not what was pinned."""

    run: int
    task: str
    step: int
    member: str
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ExecutionSteps:
    """Steps of the current trials, and the ledger: logical calls and attempts of current takes, by attempt rows."""

    by_trial: Mapping[tuple[int, str], tuple[StepRecord, ...]]
    calls: int
    attempts: int
    errors: Mapping[str, int]
    drift: tuple[DriftEvent, ...]


def load_steps(folder: ExecutionFolder, trials: Sequence[Trial], *, from_journal: bool) -> ExecutionSteps:
    """Reads the steps and attempts of the current trials."""
    if from_journal:
        return steps_of(folder.rows("step"), folder.rows("attempt"), trials)
    steps: list[dict[str, Any]] = read_rows(folder, "steps", _STEP_COLUMNS).to_pylist()
    attempts = read_rows(folder, "attempts", [*_ATTEMPT_COLUMNS, "ended_at"]).to_pylist()
    # An attempt that never returned has no error and no reply: its take was abandoned.
    return steps_of(steps, (row for row in attempts if row["ended_at"] is not None), trials)


def steps_of(
    steps: Iterable[Mapping[str, Any]], attempts: Iterable[Mapping[str, Any]], trials: Sequence[Trial]
) -> ExecutionSteps:
    """The same from rows, with `actions` and `added` as data or as JSON text."""
    current = {(trial.run, trial.task): trial.take for trial in trials}
    failed: set[tuple[int, str, int]] = set()
    ledger: set[tuple[int, str, int, int]] = set()
    errors: dict[str, int] = defaultdict(int)
    drift: list[DriftEvent] = []
    count = 0
    for row in attempts:
        if current.get((row["run"], row["task"])) != row["take"]:
            continue
        place = row["run"], row["task"], row["step"]
        count += 1
        ledger.add((*place, row["call"]))
        if row["error"] is not None:
            errors[row["error"]] += 1
            failed.add(place)
        if row["drift"]:
            drift.append(DriftEvent(*place, row["member"], tuple(row["drift"])))
    found: dict[tuple[int, str], list[tuple[int, StepRecord]]] = defaultdict(list)
    for row in steps:
        if current.get((row["run"], row["task"])) == row["take"]:
            event = Event.HIDDEN if (row["run"], row["task"], row["step"]) in failed else Event.NONE
            record = _step(_data(row["actions"]), _data(row["added"]), event)
            found[row["run"], row["task"]].append((row["step"], record))
    by_trial = {
        place: tuple(record for _, record in sorted(several, key=lambda item: item[0]))
        for place, several in found.items()
    }
    drift.sort(key=lambda event: (event.run, event.task, event.step))
    return ExecutionSteps(_mended(by_trial), len(ledger), count, dict(errors), tuple(drift))


def _data(value: Any) -> list[dict[str, Any]]:
    data: list[dict[str, Any]] = orjson.loads(value) if isinstance(value, str) else value
    return data


def _step(
    actions: Sequence[Mapping[str, Any]], added: Sequence[Mapping[str, Any]], event: Event
) -> StepRecord:
    reply = next((m for m in added if m["role"] == "assistant"), {})
    place = next((i for i, m in enumerate(added) if m["role"] == "assistant"), 0)
    told = tuple(_text(m.get("content")) for m in added[place + 1 :])
    asked = reply.get("tool_calls") or []
    calls: list[ToolCall] = []
    unread: list[bool] = []
    observed = Event.NONE
    for i, entry in enumerate(actions):
        content = told[i] if i < len(told) else ""
        action = entry["action"]
        cut = False
        if action is None and i < len(asked):
            function = asked[i]["function"]
            cut = "not valid JSON" in content
            calls.append(ToolCall(function["name"], function["arguments"]))
        elif action is None:
            calls.append(ToolCall("(no tool)", _text(reply.get("content"))))
        else:
            calls.append(_call(action))
        unread.append(cut)
        if cut or (entry["error"] and any(mark in content.lower() for mark in _TIMED_OUT)):
            observed = Event.VISIBLE
    return StepRecord(
        StepTaken(tuple(calls), event, observed), tuple(unread), _text(reply.get("content")), told
    )


def _call(action: Mapping[str, Any]) -> ToolCall:
    if "code" in action:
        return ToolCall("code", action["code"])
    return ToolCall(action["name"], canonical_bytes(action["arguments"]).decode())


def _mended(
    by_trial: Mapping[tuple[int, str], tuple[StepRecord, ...]],
) -> dict[tuple[int, str], tuple[StepRecord, ...]]:
    """Arguments that were cut off stand for those that another run of the task sent whole at that step.

    The agent asked for the same; what differs is what it was told. Else the cut itself would count as parting,
    and the step after it, where the agent could react, as already parted.
    """
    whole: dict[tuple[str, int], list[ToolCall]] = defaultdict(list)
    for (_, task), steps in by_trial.items():
        for number, step in enumerate(steps):
            whole[task, number] += [
                call for call, cut in zip(step.taken.calls, step.unread, strict=True) if not cut
            ]

    def mend(task: str, number: int, call: ToolCall) -> ToolCall:
        begun = "".join(call.arguments.split())
        for other in whole[task, number]:
            if other.tool == call.tool and "".join(other.arguments.split()).startswith(begun):
                return other
        return call

    mended = dict(by_trial)
    for (run, task), steps in by_trial.items():
        if not any(any(step.unread) for step in steps):
            continue
        mended[run, task] = tuple(
            replace(
                step,
                taken=replace(
                    step.taken,
                    calls=tuple(
                        mend(task, number, call) if cut else call
                        for call, cut in zip(step.taken.calls, step.unread, strict=True)
                    ),
                ),
            )
            for number, step in enumerate(steps)
        )
    return mended


def _text(content: Any) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return orjson.dumps(content).decode()
