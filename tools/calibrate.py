"""Checks the statistics against simulated experiments whose truth is known, and prints a Markdown table.

    python tools/calibrate.py [--experiments 2000] [--seed 1]

Task rates are redrawn for each experiment from a Beta (within clusters of three: a task has the cluster's rate with
chance 0.8, else its own), so truth is the Beta's expectation. Columns: how many of the 95% intervals cover it; how many
of the A/A comparisons, of one spec executed twice, reject at 5%; and the power for a gap 12 points smaller, as `plan`
predicts it and as the comparison of the report finds it in fresh experiments. Some minutes of CPU.
"""

import os

# Threads would spin on products this small, and their spinning is CPU time.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv

from xspec.analysis.consistency import Floats
from xspec.analysis.contrast import contrasts
from xspec.analysis.intervals import Estimate, mean_estimates
from xspec.analysis.power import Simulation, changed_rates
from xspec.analysis.rates import BetaRates

# Mean@5 77.5 and a gap of about 24 points, as in the published baseline.
ALPHA, BETA, SHARED = 1.1, 0.32, 0.8
TASKS, CLUSTER_SIZES, RUNS = (30, 92, 168), (1, 3), (3, 5, 10)
DIFFERENCE_PP = 12.0
RESAMPLES = 2_000


@dataclass(frozen=True)
class Row:
    """Shares in percent for one size of experiment, in the order of the table's columns."""

    tasks: int
    clusters: int
    k: int
    shares: tuple[float, ...]

    def markdown(self) -> str:
        """One line of the table."""
        cells = [str(self.tasks), str(self.clusters), str(self.k), *(f"{share:.1f}" for share in self.shares)]
        return f"| {' | '.join(cells)} |"


HEAD = """\
| tasks | clusters | k | Mean@k covered | Pass^k | gap | gap difference, none | with effect | \
A/A Mean@k | Pass^k | gap | power planned | found |
|---|---|---|---|---|---|---|---|---|---|---|---|---|"""


def figures(passes: Floats, k: int) -> Floats:
    """Mean@k, Pass^k and gap of each task."""
    always = passes == k
    return np.stack([passes / k, always, passes / k - always], axis=-1)


def expected(k: int, effect: float = 0.0) -> Floats:
    """Expectations of the three in percent over the Beta, when each task is so much steadier."""
    places = (np.arange(20_000) + 0.5) / 20_000
    rates = changed_rates(betaincinv(ALPHA, BETA, places), effect, "steadier")
    mean, always = float(rates.mean()), float((rates**k).mean())
    return 100 * np.array([mean, always, mean - always])


def covers(estimate: Estimate, truth: float) -> bool:
    """An interval that is not given covers nothing."""
    return estimate.interval is not None and estimate.interval.low <= truth <= estimate.interval.high


def measured(tasks: int, size: int, k: int, experiments: int, seed: int) -> Row:
    """Simulate one size of experiment."""
    clusters = round(tasks / size)
    source = BetaRates(ALPHA, BETA, size, SHARED if size > 1 else 0.0)
    simulation = Simulation(source)
    planned = simulation.power("gap", DIFFERENCE_PP, clusters * size, k)
    effect = simulation.effect("gap", DIFFERENCE_PP, k)
    assert effect is not None
    assert planned.power is not None
    truth, with_effect = expected(k), expected(k, effect)
    random = np.random.default_rng((seed, tasks, size, k))
    rates = source.draw(random, experiments, clusters).rates.reshape(experiments, -1)
    labels = np.repeat(np.arange(clusters), size)
    first, second = (figures(random.binomial(k, rates), k) for _ in range(2))
    helped = figures(random.binomial(k, changed_rates(rates, effect, "steadier")), k)
    covered, rejected = np.zeros(5), np.zeros(4)
    for a, again, b in zip(first, second, helped, strict=True):
        arm = mean_estimates(a, labels, resamples=RESAMPLES)
        same = contrasts(again - a, labels, resamples=RESAMPLES)
        (changed,) = contrasts((b - a)[:, 2:], labels, resamples=RESAMPLES)
        covered += [
            *(covers(estimate, value) for estimate, value in zip(arm, truth, strict=True)),
            covers(same[2].difference, 0.0),
            covers(changed.difference, with_effect[2] - truth[2]),
        ]
        rejected += [(row.p.value or 1.0) <= 0.05 for row in (*same, changed)]
    shares = 100 * np.concatenate([covered, rejected[:3]]) / experiments
    found = 100 * rejected[3] / experiments
    return Row(clusters * size, clusters, k, (*shares.tolist(), 100 * planned.power, found))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--experiments", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(HEAD, flush=True)
    for tasks in TASKS:
        for size in CLUSTER_SIZES:
            for k in RUNS:
                print(measured(tasks, size, k, options.experiments, options.seed).markdown(), flush=True)


if __name__ == "__main__":
    main()
