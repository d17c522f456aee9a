"""Checks the instrument against rehearsals whose expected figures are known, and prints a Markdown table.

    python tools/calibrate_rehearsal.py [--rehearsals 100] [--suites banking,slack] [--k 5] [--store PATH]

Each rehearsal deals the tasks other difficulties (its seed) and executes a baseline and a guided arm by the way that
every experiment goes: worker, agent, guarded client, a real socket, faults and retries, verdicts, journal, Parquet,
and the report's figures. The error is what was measured less what `xspec.rehearsal.expectation` computes for those
very difficulties. An instrument without bias has a mean error of about its standard error, which follows from the
same chances, since trials of a task are independent; beside it the one found in the spread of the errors. 100
rehearsals take ten minutes and more. With a store the same command goes on after an interrupt.
"""

import argparse
import asyncio
import contextlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("XSPEC_MLFLOW", "later")  # nobody looks at hundreds of arms in a browser

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from xspec.analysis.consistency import consistency
from xspec.benchmarks.pool import WorkerPool
from xspec.cli.run import compile_plain
from xspec.experiment.compile import Compiled
from xspec.experiment.execute import execute
from xspec.experiment.rehearse import rehearsal_config, rehearsal_members
from xspec.guides.rules import system_text
from xspec.records.executions import executions_of
from xspec.rehearsal.behaviour import Player
from xspec.rehearsal.config import RehearsalConfig
from xspec.rehearsal.expectation import Rehearsal
from xspec.rehearsal.guide import coverage_of
from xspec.rehearsal.scripts import TaskScript
from xspec.report.analyse import analyse_arm
from xspec.report.load import load_record
from xspec.spec.compose import compose
from xspec.spec.models import ExperimentSpec
from xspec.spec.store import Store

ARMS = ("baseline", "guided")
FIGURES = ("Mean@{k}", "Pass^{k}", "gap")
# Quick faults of every kind that is retried or seen. Another served model only takes trials away.
FAULTS = {
    "stall": 0.0,
    "other_model": 0.0,
    "garbled_arguments": 0.02,
    "retry_after_s": 0.01,
    "latency_s": 0.0,
}

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Row:
    """Means over the rehearsals; both standard errors are of the mean error."""

    arm: str
    figure: str
    expected: float
    error: float
    standard_error: float
    standard_error_found: float

    def markdown(self, k: int) -> str:
        """One line of the table."""
        errors = f"{self.standard_error:.2f} | {self.standard_error_found:.2f}"
        ratio = f"{self.error / self.standard_error:+.1f}"
        figure = self.figure.format(k=k)
        return f"| {self.arm} | {figure} | {self.expected:.1f} | {self.error:+.2f} | {errors} | {ratio} |"


@dataclass(frozen=True)
class Errors:
    """Of each rehearsal and both arms: what was expected, what was measured, and the variance of the latter.

    Arrays are rehearsals by arms by figures, in percent and points. `lost` counts trials without a verdict.
    `hidden_holds_1` says of each execution with an interval for the ratio of hidden events whether it holds 1: the
    simulated model cannot see a retry, so it has no effect.
    """

    expected: Floats
    measured: Floats
    variance: Floats
    lost: int
    hidden_holds_1: tuple[bool, ...]

    def rows(self) -> Iterator[Row]:
        """Each figure of both arms, then what the guide does to it."""
        columns = self.expected, self.measured - self.expected, self.variance
        shown = [(name, *(x[:, arm] for x in columns)) for arm, name in enumerate(ARMS)]
        differences = (np.diff(x, axis=1)[:, 0] for x in columns[:2])
        shown.append(("effect of the guide", *differences, self.variance.sum(axis=1)))
        for name, expected, error, variance in shown:
            n = len(error)
            predicted, found = np.sqrt(variance.sum(axis=0)) / n, error.std(axis=0, ddof=1) / np.sqrt(n)
            for i, figure in enumerate(FIGURES):
                yield Row(name, figure, expected[:, i].mean(), error[:, i].mean(), predicted[i], found[i])


def rehearse(rehearsals: int, suites: Sequence[str], k: int, store: Store, workers: int = 6) -> Errors:
    """Executes what the store does not have yet, all arms in one sweep, and compares."""
    compiled = list(_compiled(rehearsals, suites, k, store, workers))
    end = execute(compiled, store)
    if end.stopped is not None:
        raise SystemExit(f"the rehearsals stopped: {end.stopped}")
    scripts = asyncio.run(_scripts(compiled[0].spec, store))
    rows = [_compared(arm.spec, scripts, store) for arm in compiled]
    shape = (rehearsals, len(ARMS), len(FIGURES))
    columns = zip(*(row[:3] for row in rows), strict=True)
    expected, measured, variance = (np.array(column).reshape(shape) for column in columns)
    hidden = tuple(row[4] for row in rows if row[4] is not None)
    return Errors(expected, measured, variance, sum(row[3] for row in rows), hidden)


def _compiled(
    rehearsals: int, suites: Sequence[str], k: int, store: Store, workers: int
) -> Iterator[Compiled]:
    overrides = [f"k={k}", f"store='{store.path}'", f"workers={workers}", "provider.backoff_s=0.01"]
    overrides += [f"provider.faults.{name}={value}" for name, value in FAULTS.items()]
    arms = [compose([*overrides, f"+arm={name}"]) for name in ARMS]
    everything, _ = compile_plain(arms[0])
    tasks = [task for task in everything.spec.benchmark.tasks if task.split(".")[0] in suites]
    for seed in range(rehearsals):
        for plain in arms:
            plain["benchmark"]["tasks"] = tasks
            plain["provider"]["behaviour"]["difficulty_seed"] = seed
            yield compile_plain(plain)[0]


async def _scripts(spec: ExperimentSpec, store: Store) -> list[TaskScript]:
    benchmark = spec.benchmark
    settings = benchmark.settings or {}
    async with WorkerPool(
        benchmark.kind, benchmark.version, benchmark.split, settings, members=1, log=None
    ) as pool:
        config = RehearsalConfig.of(await rehearsal_config([spec], store, pool))
    return [config.tasks[task] for task in benchmark.tasks]


def _compared(
    spec: ExperimentSpec, scripts: list[TaskScript], store: Store
) -> tuple[Any, Any, Any, int, bool | None]:
    """Expected figures, measured figures, variances, trials without a verdict, whether the hidden ratio may be 1."""
    (member,) = rehearsal_members(spec)
    manifest = store.json_blob(spec.benchmark.manifest)
    guide = store.json_blob(spec.guide.digest) if spec.guide.kind != "none" else None
    names = tuple({t["function"]["name"] for toolset in manifest["toolsets"].values() for t in toolset})
    coverage = {s.task: coverage_of(system_text("", guide, s.task), names) for s in scripts}
    rehearsal = Rehearsal(member.behaviour, [member.faults], scripts, coverage)
    player = Player(member.behaviour)
    p = np.array([rehearsal.pass_chance(script, player.difficulty(script)) for script in scripts])
    truth = rehearsal.fixed(spec.k)
    record = load_record(store, executions_of(store, spec.id)[0])
    found = consistency(record.outcomes(), spec.k)
    hidden = next(a for a in analyse_arm(record, []).attribution if a.kind == "hidden").hazard_ratio_interval
    return (
        (truth.mean_at_k, truth.pass_hat_k, truth.gap_pp),
        (found.mean_at_k_pct, found.pass_hat_k_pct, found.gap_pp),
        variance_of(p, spec.k),
        found.trials.invalid + found.trials.missing,
        None if hidden is None else hidden[0] <= 1 <= hidden[1],
    )


def variance_of(p: Floats, k: int) -> Floats:
    """Variances of Mean@k, Pass^k and gap (points squared) when task i passes each of its k trials with chance p_i."""
    passes = np.arange(k + 1)
    chances = binom.pmf(passes, k, p[:, None])
    figures = np.stack([passes / k, passes == k, passes / k - (passes == k)])
    mean, square = chances @ figures.T, chances @ (figures**2).T
    return 100**2 * np.asarray((square - mean**2).sum(axis=0)) / len(p) ** 2


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rehearsals", type=int, default=100)
    parser.add_argument("--suites", default="banking,slack")
    parser.add_argument("--k", type=int, default=5)
    parser.add_argument("--store", type=Path, help="keep the executions there (default: nowhere)")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        path = options.store or stack.enter_context(tempfile.TemporaryDirectory(prefix="xspec-rehearsals-"))
        errors = rehearse(options.rehearsals, options.suites.split(","), options.k, Store(path))
    print("| arm | figure | expected | mean error | its standard error | found in the spread | ratio |")
    print("|---|---|---|---|---|---|---|")
    for row in errors.rows():
        print(row.markdown(options.k))
    holds = errors.hidden_holds_1
    print(
        f"\n{options.rehearsals} rehearsals of {ARMS[0]} and {ARMS[1]}; trials without a verdict: {errors.lost}."
    )
    print(
        f"Attribution to hidden events: of {len(holds)} executions with an interval, "
        f"{np.mean(holds) if holds else 0:.1%} hold 1."
    )


if __name__ == "__main__":
    main()
