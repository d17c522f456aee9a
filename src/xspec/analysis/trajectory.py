"""What a trial did, step by step, as far as the analysis needs to know, and the same as integer tables.

Steps are numbered from 0, as in the rows. (Papers often count from 1: their step 2 is step 1 here.)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntFlag
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from xspec.analysis.consistency import Ints

Level = Literal["arguments", "names"]
LEVELS: tuple[Level, ...] = ("arguments", "names")


class Event(IntFlag):
    """Infrastructure events: hidden ones the agent can't know of (a silent retry), visible ones it can."""

    NONE = 0
    HIDDEN = 1
    VISIBLE = 2


class ToolCall(NamedTuple):
    """A tool's name and its arguments as canonical text."""

    tool: str
    arguments: str


@dataclass(frozen=True, slots=True)
class StepTaken:
    """The tool calls of one step, none if it gave the answer; what happened to its model call and observation."""

    calls: tuple[ToolCall, ...]
    call_event: Event = Event.NONE
    observation_event: Event = Event.NONE


Trajectory = Sequence[StepTaken]
TrajectoryTable = Sequence[Sequence[Trajectory | None]]
"""By task, then by run. None where there is no valid trial: a trial cut short says nothing about parting."""


@dataclass(frozen=True, slots=True)
class EncodedRuns:
    """All trials as rows, ordered by task. Step tables are rows by steps, 0 beyond a trial's end.

    `codes` names what a step did: 0 is no tool call, whether the step answered or never came. `prefixes` names
    what a trial did up to and with a step, so that equal numbers of one task mean one common prefix. `calls` is
    the flat tool chain, padded with -1.
    """

    task: Ints
    run: Ints
    steps: Ints
    prefixes: Ints
    calls: Ints
    chain_length: Ints
    call_events: Ints
    observation_events: Ints


def encode(table: TrajectoryTable) -> dict[Level, EncodedRuns]:
    """Number the trials' steps and prefixes, with the calls' arguments and by tool names alone."""
    rows = [
        (task, run, trajectory)
        for task, runs in enumerate(table)
        for run, trajectory in enumerate(runs)
        if trajectory is not None
    ]
    acts: dict[tuple[ToolCall, ...], int] = {(): 0}
    taken = [step for _, _, trajectory in rows for step in trajectory]
    numbers = np.array([acts.setdefault(step.calls, len(acts)) for step in taken], dtype=np.int64)
    steps = np.array([len(trajectory) for _, _, trajectory in rows], dtype=np.int64)
    call_events = _padded(np.array([step.call_event for step in taken], dtype=np.int64), steps)
    observation_events = _padded(np.array([step.observation_event for step in taken], dtype=np.int64), steps)
    task = np.array([task for task, _, _ in rows], dtype=np.int64)
    run = np.array([run for _, run, _ in rows], dtype=np.int64)
    encoded: dict[Level, EncodedRuns] = {}
    for level in LEVELS:
        # Steps are many, distinct acts few: the rest is looked up by act.
        keys = [_keys(act, level) for act in acts]
        known: dict[tuple[object, ...], int] = {(): 0}
        act_number = np.array([known.setdefault(key, len(known)) for key in keys], dtype=np.int64)
        calls: dict[object, int] = {}
        flat = [[calls.setdefault(call, len(calls)) for call in key] for key in keys]
        chains = [call for number in numbers.tolist() for call in flat[number]]
        per_step = np.array([len(key) for key in keys], dtype=np.int64)[numbers]
        length = np.diff(np.concatenate([[0], np.cumsum(per_step)])[np.concatenate([[0], np.cumsum(steps)])])
        encoded[level] = EncodedRuns(
            task=task,
            run=run,
            steps=steps,
            prefixes=_prefixes(task, _padded(act_number[numbers], steps), len(known)),
            calls=_padded(np.array(chains, dtype=np.int64), length, -1),
            chain_length=length,
            call_events=call_events,
            observation_events=observation_events,
        )
    return encoded


def _keys(act: tuple[ToolCall, ...], level: Level) -> tuple[object, ...]:
    return act if level == "arguments" else tuple(call.tool for call in act)


def _padded(flat: Ints, lengths: Ints, padding: int = 0) -> Ints:
    """Rows of these lengths, one after the other in `flat`, as a table."""
    table = np.full((len(lengths), int(lengths.max(initial=0))), padding, dtype=np.int64)
    table[np.arange(table.shape[1]) < lengths[:, np.newaxis]] = flat
    return table


def _prefixes(task: Ints, codes: Ints, acts: int) -> Ints:
    prefixes = np.zeros_like(codes)
    before = task
    for step in range(codes.shape[1]):
        # Renumbered at each step, so that the numbers stay below rows * acts.
        before = np.unique(before * acts + codes[:, step], return_inverse=True)[1].astype(np.int64)
        prefixes[:, step] = before
    return prefixes


def pairs_of_runs(task: Ints) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Row numbers of all pairs of trials of one task, in the order of `task`, which is sorted."""
    starts = np.flatnonzero(np.diff(task, prepend=-1))
    sizes = np.diff(starts, append=len(task))
    one, other = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for size in np.unique(sizes):
        i, j = np.triu_indices(int(size), 1)
        first = starts[sizes == size][:, np.newaxis]
        one.append((first + i).ravel())
        other.append((first + j).ravel())
    a, b = np.concatenate(one), np.concatenate(other)
    order = np.argsort(a, kind="stable")
    return a[order], b[order]
