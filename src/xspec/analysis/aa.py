"""One spec executed twice: the instrument compared with itself.

A finding stands on its own paired test. The A/A difference is shown with its interval as a check of calibration, and
is no yardstick: half of all null differences exceed one A/A draw.

Beside it stands what run noise alone does. With the tasks and their pass rates fixed, Mean@k of an execution has
variance sum p(1-p)/n over tasks, divided by N²; the disagreement of a task is the unbiased estimate of 2p(1-p). So the
old habit "two runs of one configuration differ by more than 5 points: look" comes with how probable that is anyway.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from xspec.analysis.compare import Comparison, compare_arms
from xspec.analysis.consistency import OutcomeCode, checked_table, disagreement_of_tasks
from xspec.analysis.distributions import normal_two_sided
from xspec.analysis.reasons import Figure, Reason
from xspec.analysis.resampling import RESAMPLES, SEED

LOOK_PP = 5.0


@dataclass(frozen=True, slots=True)
class RunNoise:
    """How far two executions of these tasks differ in Mean@k by run noise alone.

    `se_pp` is the standard error of their difference, `chance` the probability of more than `threshold_pp` points.
    """

    tasks: int
    runs: int
    threshold_pp: float
    se_pp: Figure
    chance: Figure


@dataclass(frozen=True, slots=True)
class AA:
    """Execution b minus execution a of one spec. `chance_by_noise` is of a Mean@k difference at least as large.

    `extra_sd_pp` estimates the standard deviation between executions beyond run noise (0 if there is none to see);
    from two executions it is a rough figure with one degree of freedom.
    """

    comparisons: tuple[Comparison, ...]
    noise: RunNoise
    chance_by_noise: Figure
    extra_sd_pp: Figure


def run_noise(
    outcomes: ArrayLike, k: int, *, runs: int | None = None, threshold_pp: float = LOOK_PP
) -> RunNoise:
    """From one execution, for two executions of `runs` runs (default k). Tasks with two valid trials or more count.

    Raises ValueError for what is no outcome table and for fewer than one run.
    """
    table = checked_table(outcomes, k)
    planned = k if runs is None else runs
    if planned < 1:
        raise ValueError(f"an execution has at least one run, not {planned}")
    passes = (table == OutcomeCode.PASS).sum(axis=0)
    valid = (table >= OutcomeCode.FAIL).sum(axis=0)
    twice = valid >= 2
    tasks = int(twice.sum())
    if not tasks:
        nothing = Figure.undefined(Reason.ONE_RUN if valid.any() else Reason.NO_VALID_TRIAL)
        return RunNoise(0, planned, threshold_pp, nothing, nothing)
    variance = disagreement_of_tasks(passes[twice], valid[twice]).sum() / planned / tasks**2
    se_pp = float(100 * np.sqrt(variance))
    return RunNoise(tasks, planned, threshold_pp, Figure(se_pp), Figure(_beyond(threshold_pp, se_pp)))


def compare_executions(
    a: ArrayLike,
    b: ArrayLike,
    k: int,
    clusters: ArrayLike | None = None,
    *,
    names: tuple[str, str] = ("first", "second"),
    threshold_pp: float = LOOK_PP,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> AA:
    """Two outcome tables of one spec, paired on the tasks complete in both; the run noise is that of both."""
    outcomes = dict(zip(names, (a, b), strict=True))
    comparisons = compare_arms(outcomes, [names], k, clusters, resamples=resamples, seed=seed)
    left_out = list(comparisons[0].left_out)
    pooled = np.delete(np.concatenate([checked_table(a, k), checked_table(b, k)]), left_out, axis=1)
    noise = run_noise(pooled, k, threshold_pp=threshold_pp)
    difference = next(c.contrast.difference for c in comparisons if c.metric == "mean_at_k")
    if difference.value is None or noise.se_pp.value is None:
        nothing = Figure.undefined(difference.reason or noise.se_pp.reason or Reason.NO_TASKS)
        return AA(comparisons, noise, nothing, nothing)
    excess = max(0.0, (difference.value**2 - noise.se_pp.value**2) / 2)
    return AA(
        comparisons,
        noise,
        Figure(_beyond(abs(difference.value), noise.se_pp.value)),
        Figure(float(np.sqrt(excess))),
    )


def _beyond(threshold_pp: float, se_pp: float) -> float:
    if se_pp == 0:
        return float(threshold_pp <= 0)
    return normal_two_sided(threshold_pp / se_pp)
