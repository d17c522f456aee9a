"""What the trials of an execution did, step by step: for trajectories, attribution and the views of tasks.

A tool call is one element of a trial's chain. A block of code gives one for each API call that it made, so that runs
part where they do something else, not where they spell it otherwise; a block that called nothing is one itself.

Events by the rule of docs/statistics.md: an attempt that failed is a *hidden* event of its call, the agent never learns
of it. *Visible* is what the agent was told: arguments or code that arrived cut off, or a tool that ran out of time. An
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
_CUT_ARGUMENTS = "not valid JSON"
_CUT_CODE = ("SyntaxError", "IndentationError")


@dataclass(frozen=True, slots=True)
class Asked:
    """What one action of a step asked for: a tool with its arguments, or `code` with its text, and the calls made.

    `cut` says that it did not parse.
    """

    tool: str
    text: str
    calls: tuple[ToolCall, ...]
    cut: bool = False


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One step. `asked` has an entry an action, `told` what came back for each; `said` is the reply's text."""

    taken: StepTaken
    asked: tuple[Asked, ...]
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
    tool_calls = reply.get("tool_calls") or []
    asked: list[Asked] = []
    observed = Event.NONE
    for i, entry in enumerate(actions):
        content = told[i] if i < len(told) else ""
        asked.append(
            _asked(entry, tool_calls[i]["function"] if i < len(tool_calls) else None, reply, content)
        )
        if asked[-1].cut or (entry["error"] and any(mark in content.lower() for mark in _TIMED_OUT)):
            observed = Event.VISIBLE
    return StepRecord(
        StepTaken(_calls(asked), event, observed), tuple(asked), _text(reply.get("content")), told
    )


def _asked(
    entry: Mapping[str, Any], function: Mapping[str, Any] | None, reply: Mapping[str, Any], content: str
) -> Asked:
    action = entry["action"]
    if action is not None and "code" in action:
        code = action["code"]
        made = tuple(_tool_call(call) for call in entry.get("calls") or ())
        # Code that does not parse does nothing at all: where calls were made, the error is of another text.
        cut = not made and entry["error"] and any(name in content for name in _CUT_CODE)
        return Asked("code", code, made or (ToolCall("code", code),), cut)
    if action is not None:
        call, cut = _tool_call(action), False
    elif function is not None:
        call, cut = ToolCall(function["name"], function["arguments"]), _CUT_ARGUMENTS in content
    else:
        call, cut = ToolCall("(no tool)", _text(reply.get("content"))), False
    return Asked(call.tool, call.arguments, (call,), cut)


def _tool_call(call: Mapping[str, Any]) -> ToolCall:
    return ToolCall(call["name"], canonical_bytes(call["arguments"]).decode())


def _calls(asked: Iterable[Asked]) -> tuple[ToolCall, ...]:
    return tuple(call for one in asked for call in one.calls)


def _mended(
    by_trial: Mapping[tuple[int, str], tuple[StepRecord, ...]],
) -> dict[tuple[int, str], tuple[StepRecord, ...]]:
    """What was cut off stands for what another run of the task sent whole at that step.

    The agent asked for the same; what differs is what it was told. Else the cut itself would count as parting,
    and the step after it, where the agent could react, as already parted.
    """
    whole: dict[tuple[str, int], list[Asked]] = defaultdict(list)
    for (_, task), steps in by_trial.items():
        for number, step in enumerate(steps):
            whole[task, number] += [one for one in step.asked if not one.cut]

    def mend(task: str, number: int, one: Asked) -> Asked:
        begun = "".join(one.text.split())
        for other in whole[task, number]:
            if other.tool == one.tool and "".join(other.text.split()).startswith(begun):
                return other
        return one

    mended = dict(by_trial)
    for (run, task), steps in by_trial.items():
        if not any(one.cut for step in steps for one in step.asked):
            continue
        mended[run, task] = tuple(
            replace(
                step,
                taken=replace(
                    step.taken,
                    calls=_calls(mend(task, number, one) if one.cut else one for one in step.asked),
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
