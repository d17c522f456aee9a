"""Task and scenario goal completion, where a cluster is a scenario of several tasks made from one template.

Scenario goal completion (SGC) is the share of scenarios all of whose tasks pass in a run, task goal completion (TGC)
the share of tasks that pass: Trivedi et al. 2024, arXiv 2407.18901. Here both are means over the runs, and over the
*complete* scenarios alone: a scenario of which only some tasks were chosen, or have enough trials, is easier to
complete, and would make SGC too high. With the same scenarios in every run, both terms are over the same tasks.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from xspec.analysis.consistency import OutcomeCode, checked_table
from xspec.analysis.intervals import Estimate, mean_estimates
from xspec.analysis.reasons import Reason
from xspec.analysis.resampling import RESAMPLES, SEED, cluster_numbers


@dataclass(frozen=True, slots=True)
class GoalCompletion:
    """Both figures with their intervals, and by run; `run_…_pct` is empty where no scenario is complete.

    `scenarios` are those of the table's tasks, `complete` how many the figures are over, `tasks` their tasks.
    """

    scenarios: int
    complete: int
    tasks: int
    tgc: Estimate
    sgc: Estimate
    run_tgc_pct: tuple[float, ...]
    run_sgc_pct: tuple[float, ...]


def goal_completion(
    outcomes: ArrayLike,
    scenarios: ArrayLike,
    sizes: ArrayLike,
    *,
    invalid_as_fail: bool = False,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> GoalCompletion | None:
    """Of a table of `OutcomeCode`, runs by tasks. Per task its scenario's label, and how many tasks that has.

    `sizes` counts the tasks that the benchmark has, be they in the table or not. A scenario is complete when all of
    them are and every trial of theirs is valid; with `invalid_as_fail`, when none is missing. None if no scenario
    has more than one task: then a cluster is no scenario, and both figures would be the pass share.

    Raises ValueError for what is no outcome table, and where there is not one label and size a task.
    """
    table = checked_table(outcomes, 1)
    whole = np.asarray(sizes, dtype=np.int64)
    if whole.shape != (table.shape[1],):
        raise ValueError(f"one scenario size a task: {table.shape[1]} tasks, sizes of shape {whole.shape}")
    numbers = cluster_numbers(scenarios, table.shape[1])
    if not (whole > 1).any():
        return None
    lowest = OutcomeCode.INVALID if invalid_as_fail else OutcomeCode.FAIL
    usable = (table >= lowest).all(axis=0) & (len(table) > 0)
    # An arm without any valid trial has no score: 0 would say something about the agent.
    scored = bool((table >= OutcomeCode.FAIL).any())
    complete = np.bincount(numbers, weights=usable)[numbers] == whole
    kept = np.flatnonzero(complete & scored)
    if not kept.size:
        nothing = Estimate.undefined(Reason.NO_TASKS if scored else Reason.NO_VALID_TRIAL)
        return GoalCompletion(int(np.unique(numbers).size), 0, 0, nothing, nothing, (), ())
    passes = (table[:, kept] == OutcomeCode.PASS).astype(np.float64)
    members = numbers[kept]
    goals = np.stack([passes[:, members == one].min(axis=1) for one in np.unique(members)], axis=1)
    (tgc,) = mean_estimates(passes.mean(axis=0)[:, np.newaxis], members, resamples=resamples, seed=seed)
    (sgc,) = mean_estimates(goals.mean(axis=0)[:, np.newaxis], None, resamples=resamples, seed=seed)
    return GoalCompletion(
        scenarios=int(np.unique(numbers).size),
        complete=goals.shape[1],
        tasks=int(kept.size),
        tgc=tgc,
        sgc=sgc,
        run_tgc_pct=tuple((100.0 * passes.mean(axis=1)).tolist()),
        run_sgc_pct=tuple((100.0 * goals.mean(axis=1)).tolist()),
    )


def goal_completion_by_group(
    outcomes: ArrayLike,
    scenarios: ArrayLike,
    sizes: ArrayLike,
    groups: ArrayLike,
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> dict[str, GoalCompletion]:
    """The same by difficulty: `groups` has a label a task, in the order of first appearance.

    A scenario whose tasks fall into several groups is complete in none of them.
    """
    table, labels = checked_table(outcomes, 1), np.asarray(groups, dtype=np.str_)
    found = {}
    for label in dict.fromkeys(labels.tolist()):
        mine = labels == label
        figures = goal_completion(
            table[:, mine],
            np.asarray(scenarios)[mine],
            np.asarray(sizes)[mine],
            resamples=resamples,
            seed=seed,
        )
        if figures is not None:
            found[label] = figures
    return found
