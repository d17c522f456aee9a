"""The grid of tasks and runs; for each task the chains of its runs side by side: where they part, what was said."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from xspec.analysis.chains import TaskDivergence
from xspec.analysis.trajectory import Event
from xspec.records.rows import Trial
from xspec.report.model import Arm, Group
from xspec.report.sentences import arm_names
from xspec.report.steps import StepRecord

_MARKS = {"pass": "p", "fail": "f", "invalid": "x"}
_TEXT = 280
_ARGUMENTS = 200


def grid_rows(group: Group) -> list[dict[str, Any]]:
    """A row a task: for each arm its runs' marks. `differ` is the chance that two runs of the task differ, in
    percent, mean over the arms."""
    trials = [_by_place(arm) for arm in group.arms]
    rows = []
    for number, task in enumerate(group.tasks):
        info = group.arms[0].record.task_info.get(task, {})
        cells, shares = [], []
        for found in trials:
            row = [found.get((run, task)) for run in range(group.k)]
            passed = sum(t is not None and t.outcome == "pass" for t in row)
            valid = sum(t is not None and t.outcome != "invalid" for t in row)
            if valid > 1:
                shares.append(200 * passed * (valid - passed) / (valid * (valid - 1)))
            cells.append({"marks": [_mark(t) for t in row], "passed": passed, "valid": valid})
        rows.append(
            {
                "number": number,
                "task": task,
                "stratum": info.get("stratum") or "",
                "difficulty": info.get("difficulty") or "",
                "differ": sum(shares) / len(shares) if shares else None,
                "cells": cells,
            }
        )
    return rows


def task_views(group: Group) -> list[dict[str, Any]]:
    """The tasks whose runs part in some arm, in the spec's order, with the arms in which they do."""
    names = arm_names(group)
    by_arm = []
    for arm in group.arms:
        found = arm.statistics.divergence.get("arguments")
        chains = {} if found is None else {task.task: task for task in found.tasks}
        by_arm.append((names[arm.spec_id], arm, chains, _by_place(arm)))
    views = []
    for number, task in enumerate(group.tasks):
        arms = []
        for name, arm, chains, trials in by_arm:
            place = (
                arm.record.spec.benchmark.tasks.index(task) if task in arm.record.spec.benchmark.tasks else -1
            )
            parted = chains.get(place)
            if parted is not None and _worth_showing(parted, task, trials):
                arms.append(_aligned(name, arm, parted, task, trials))
        if arms:
            info = group.arms[0].record.task_info.get(task, {})
            instruction = _clipped(info.get("instruction") or "", 600)
            views.append({"number": number, "task": task, "instruction": instruction, "arms": arms})
    return views


def _by_place(arm: Arm) -> dict[tuple[int, str], Trial]:
    return {(trial.run, trial.task): trial for trial in arm.record.trials}


def _mark(trial: Trial | None) -> str:
    if trial is None:
        return "m"
    return _MARKS[trial.outcome] + (" r" if trial.retry_count else "")


def _worth_showing(parted: TaskDivergence, task: str, trials: Mapping[tuple[int, str], Trial]) -> bool:
    outcomes = {trials[run, task].outcome for run in parted.runs if (run, task) in trials}
    return parted.first_divergent_step is not None or len(outcomes) > 1


def _aligned(
    name: str, arm: Arm, parted: TaskDivergence, task: str, trials: Mapping[tuple[int, str], Trial]
) -> dict[str, Any]:
    assert arm.record.steps is not None
    steps = {run: arm.record.steps.by_trial.get((run, task), ()) for run in parted.runs}
    order = sorted(range(len(parted.runs)), key=lambda i: (parted.prefixes[i], parted.runs[i]))
    rows: list[dict[str, Any]] = []
    previous: tuple[int, ...] | None = None
    for i in order:
        run, prefix = parted.runs[i], parted.prefixes[i]
        mark = {"run": run, "mark": _mark(trials.get((run, task)))}
        if prefix == previous:
            rows[-1]["runs"].append(mark)
            continue
        shared = 0
        if previous is not None:
            shared = next((n for n, (a, b) in enumerate(zip(prefix, previous, strict=True)) if a != b), 0)
        rows.append({"runs": [mark], "shared": shared})
        previous = prefix
    for row in rows:
        row["cells"] = _cells([steps[mark["run"]] for mark in row["runs"]], row.pop("shared"))
    first = parted.first_divergent_step
    return {
        "name": name,
        "rows": rows,
        "steps": len(parted.prefixes[0]) if parted.prefixes else 0,
        "first": first,
        "sides": _sides(parted, first, steps) if first is not None else _answers(steps),
    }


def _cells(runs: Sequence[Sequence[StepRecord]], shared: int) -> list[dict[str, Any]]:
    """The tools called at each step, or that it answered; what the row above did is not repeated. With the events of
    any of the runs, which all did the same."""
    cells = []
    for number, step in enumerate(runs[0]):
        tools = Counter(call.tool for call in step.taken.calls)
        text = ", ".join(f"{tool} x{n}" if n > 1 else tool for tool, n in tools.items())
        taken = [own[number].taken for own in runs if number < len(own)]
        cells.append(
            {
                "text": (text or "answer") if number >= shared else "",
                "retried": any(one.call_event & Event.HIDDEN for one in taken),
                "told": any(one.observation_event & Event.VISIBLE for one in taken),
            }
        )
    return cells


def _sides(
    parted: TaskDivergence, step: int, steps: Mapping[int, Sequence[StepRecord]]
) -> list[dict[str, Any]]:
    """What the reply was at the step where they part, on each side."""
    sides: dict[int, list[int]] = {}
    for run, prefix in zip(parted.runs, parted.prefixes, strict=True):
        sides.setdefault(prefix[step], []).append(run)
    found = []
    for runs in sides.values():
        own = steps[runs[0]]
        before = own[step - 1] if 0 < step <= len(own) else None
        told = before is not None and bool(before.taken.observation_event & Event.VISIBLE)
        found.append(
            {
                "runs": runs,
                "calls": _calls(own[step]) if step < len(own) else [],
                "said": _clipped(own[step].said, _TEXT) if step < len(own) else "",
                "over": step >= len(own),
                "told": _clipped(" ".join(before.told), _TEXT) if before is not None and told else "",
                "retried": [
                    run
                    for run in runs
                    if step < len(steps[run]) and steps[run][step].taken.call_event & Event.HIDDEN
                ],
            }
        )
    return found


def _answers(steps: Mapping[int, Sequence[StepRecord]]) -> list[dict[str, Any]]:
    """Where all runs did the same, and yet some passed: what each answered."""
    said: dict[str, list[int]] = {}
    for run, own in steps.items():
        said.setdefault(_clipped(own[-1].said if own else "", _TEXT), []).append(run)
    return [
        {"runs": runs, "calls": [], "said": text, "over": False, "told": "", "retried": []}
        for text, runs in said.items()
    ]


def _calls(step: StepRecord) -> list[dict[str, str]]:
    return [
        {"tool": call.tool, "arguments": _clipped(call.arguments, _ARGUMENTS)} for call in step.taken.calls
    ]


def _clipped(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
