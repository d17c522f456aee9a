"""Where and how much the runs of a task part ways.

A tool chain is the sequence of (tool, canonical arguments), or of tool names alone, since arguments may differ
harmlessly. Runs part at the first step at which they no longer share one prefix. Similarity is 1 - Levenshtein
distance / longer length of two chains (Levenshtein 1966); two empty chains are equal.
"""

from dataclasses import dataclass

import numpy as np

from xspec.analysis.consistency import Floats, Ints
from xspec.analysis.reasons import Figure, Reason
from xspec.analysis.trajectory import EncodedRuns, Level, TrajectoryTable, encode, pairs_of_runs


@dataclass(frozen=True, slots=True)
class TaskDivergence:
    """One task. `first_divergent_step` is None if all its runs did the same, `similarity` with fewer than two.

    `prefixes` has a row a trial (of the runs `runs`) and a column a step: equal numbers mean one common prefix.
    """

    task: int
    runs: tuple[int, ...]
    distinct_chains: int
    first_divergent_step: int | None
    similarity: float | None
    prefixes: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class StepAgreement:
    """Pairs of runs at a step: on one prefix before it, parting at it; `together` is of all pairs, after it."""

    step: int
    at_risk: int
    parted: int
    together: float


@dataclass(frozen=True, slots=True)
class Divergence:
    """Over the tasks with two trials or more. `first_steps[t]` counts the tasks that part at step t first."""

    level: Level
    tasks: tuple[TaskDivergence, ...]
    mean_distinct_chains: Figure
    divergent_share: Figure
    mean_similarity: Figure
    first_steps: tuple[int, ...]
    agreement: tuple[StepAgreement, ...]


def divergence(table: TrajectoryTable, level: Level = "arguments") -> Divergence:
    """Trajectories by task and run. Tasks without a trial are left out of `tasks`."""
    return divergence_of(encode(table)[level], level)


def divergence_of(runs: EncodedRuns, level: Level) -> Divergence:
    """The same from trials that are encoded already, at the level given."""
    one, other = pairs_of_runs(runs.task)
    width = runs.prefixes.shape[1]
    same = runs.prefixes[one] == runs.prefixes[other]
    parted_at = (
        np.where(same.all(axis=1), width, np.argmin(same, axis=1)) if width else np.zeros(len(one), int)
    )
    longest = np.maximum(runs.steps[one], runs.steps[other])
    similarity = _similarities(runs, one, other)
    chains = np.unique(np.column_stack([runs.task, runs.calls]), axis=0)[:, 0]
    found, starts, sizes = np.unique(runs.task, return_index=True, return_counts=True)
    pair_task = runs.task[one]
    prefixes = _renumbered(runs.prefixes, starts, sizes)
    tasks = []
    for task, start, size in zip(found.tolist(), starts.tolist(), sizes.tolist(), strict=True):
        end = start + size
        of_task = slice(*np.searchsorted(pair_task, [task, task + 1]))
        first = int(parted_at[of_task].min(initial=width))
        steps = int(runs.steps[start:end].max())
        tasks.append(
            TaskDivergence(
                task=task,
                runs=tuple(runs.run[start:end].tolist()),
                distinct_chains=int(np.searchsorted(chains, task, "right") - np.searchsorted(chains, task)),
                first_divergent_step=first if first < width else None,
                similarity=float(similarity[of_task].mean()) if size > 1 else None,
                prefixes=tuple(map(tuple, prefixes[start:end, :steps].tolist())),
            )
        )
    several = [task for task in tasks if len(task.runs) > 1]
    firsts = [task.first_divergent_step for task in several if task.first_divergent_step is not None]
    return Divergence(
        level=level,
        tasks=tuple(tasks),
        mean_distinct_chains=_mean([task.distinct_chains for task in several]),
        divergent_share=_mean([task.first_divergent_step is not None for task in several]),
        mean_similarity=_mean([task.similarity for task in several if task.similarity is not None]),
        first_steps=tuple(np.bincount(np.array(firsts, dtype=np.int64)).tolist()),
        agreement=tuple(
            StepAgreement(
                step=step,
                at_risk=int(((parted_at >= step) & (longest > step)).sum()),
                parted=int((parted_at == step).sum()),
                together=float((parted_at > step).mean()),
            )
            for step in range(width if len(one) else 0)
        ),
    )


def _similarities(runs: EncodedRuns, one: Ints, other: Ints) -> Floats:
    distance = levenshtein(
        runs.calls[one], runs.chain_length[one], runs.calls[other], runs.chain_length[other]
    )
    longer = np.maximum(runs.chain_length[one], runs.chain_length[other])
    return np.asarray(1.0 - distance / np.maximum(longer, 1), dtype=np.float64)


def levenshtein(a: Ints, a_length: Ints, b: Ints, b_length: Ints) -> Ints:
    """Edit distances of many pairs at once: rows of codes with their lengths.

    Wagner and Fischer (1974), one row of the matrix at a time for all pairs. Insertions within a row chain up; the
    running minimum of (cost - column) does them all in one go.
    """
    columns = np.arange(b.shape[1] + 1)
    row = np.tile(columns, (len(a), 1))
    found = row[np.arange(len(a)), b_length]
    for i in range(1, a.shape[1] + 1):
        best = np.empty_like(row)
        best[:, 0] = i
        best[:, 1:] = np.minimum(row[:, 1:] + 1, row[:, :-1] + (a[:, i - 1 : i] != b))
        row = np.minimum.accumulate(best - columns, axis=1) + columns
        done = a_length == i
        found[done] = row[done, b_length[done]]
    return found


def _renumbered(prefixes: Ints, starts: Ints, sizes: Ints) -> Ints:
    """By task and step, prefixes numbered 0, 1, … in the order in which the trials show them."""
    if not prefixes.size:
        return prefixes
    place = np.arange(int(sizes.max()))
    present = place < sizes[:, np.newaxis]
    table = prefixes[np.where(present, starts[:, np.newaxis] + place, starts[:, np.newaxis])]
    first = (table[:, :, np.newaxis, :] == table[:, np.newaxis, :, :]).argmax(axis=2)
    leads = first == place[:, np.newaxis]
    ranks = np.cumsum(leads, axis=1) - 1
    return np.asarray(np.take_along_axis(ranks, first, axis=1)[present], dtype=np.int64)


def _mean(values: list[int] | list[bool] | list[float]) -> Figure:
    return Figure(float(np.mean(values))) if values else Figure.undefined(Reason.ONE_RUN)
