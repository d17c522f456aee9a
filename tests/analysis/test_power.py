"""Power: against an independent simulation with the report's own test, and the plan built on it."""

import numpy as np
import pytest
from scipy.special import expit, logit

from xspec.analysis.compare import compare_arms
from xspec.analysis.detectable import minimum_detectable_pp
from xspec.analysis.intervals import DIFFERENCE, mean_estimates
from xspec.analysis.plan import Usage, needed, price
from xspec.analysis.power import PlannedMetric, Simulation, changed_rates
from xspec.analysis.rates import BetaRates, GivenRates, StoredRates, fit_beta
from xspec.analysis.reasons import Reason


def simulated_power(
    source: BetaRates, effect: float, metric: str, tasks: int, k: int, experiments: int
) -> tuple[float, float]:
    """Share found, and mean difference, by outcome tables through the comparison of the report."""
    random = np.random.default_rng(77)
    size = source.tasks_per_cluster
    found, differences = 0, 0.0
    for _ in range(experiments):
        rates = source.draw(random, 1, tasks // size).rates.ravel()
        helped = expit(logit(rates) / (1 - effect)) if metric == "gap" else 1 - (1 - rates) * (1 - effect)
        a, b = (np.where(random.random((k, tasks)) < p, 3, 2) for p in (rates, helped))
        rows = compare_arms({"a": a, "b": b}, [("a", "b")], k, np.arange(tasks) // size, resamples=1000)
        row = next(row for row in rows if row.metric == metric)
        assert row.contrast.p.value is not None
        assert row.contrast.difference.value is not None
        found += row.contrast.p.value <= 0.05
        differences += row.contrast.difference.value
    return found / experiments, differences / experiments


@pytest.mark.parametrize(
    ("metric", "difference", "tasks", "source"),
    [
        ("gap", 12.0, 92, BetaRates(2.0, 0.7)),
        ("mean_at_k", 6.0, 90, BetaRates(2.0, 0.7, 3, 0.8)),
        ("pass_hat_k", 12.0, 60, BetaRates(2.0, 0.7)),
    ],
)
def test_power_is_that_of_an_independent_simulation(
    metric: PlannedMetric, difference: float, tasks: int, source: BetaRates
) -> None:
    """Within 3 points, to which the 800 experiments here add an error of up to 1.8 (2 standard errors: 3.5)."""
    simulation = Simulation(source)
    planned = simulation.power(metric, difference, tasks, 5)
    assert planned.power is not None
    assert planned.se is not None
    effect = simulation.effect(metric, difference, 5)
    assert effect is not None
    found, mean_difference = simulated_power(source, effect, metric, tasks, 5, 800)
    sign = -1 if metric == "gap" else 1
    assert sign * mean_difference == pytest.approx(difference, abs=0.7)
    assert planned.power == pytest.approx(found, abs=0.045)


def test_no_effect_is_found_at_the_level_of_the_test() -> None:
    planned = Simulation(BetaRates(2.0, 0.7)).power("mean_at_k", 0.01, 92, 5)
    assert planned.power == pytest.approx(0.05, abs=0.02)


def test_figures_of_the_statistics_page() -> None:
    """A minimum detectable gap difference of about 12 points at 92 tasks, 9 at 168."""
    simulation = Simulation(BetaRates(1.1, 0.32), change="fewer failures", experiments=1000)
    at_92, at_168 = (simulation.detectable("gap", tasks, 5).difference_pp for tasks in (92, 168))
    assert at_92 == pytest.approx(12, abs=1)
    assert at_168 == pytest.approx(9, abs=1)


def test_more_contrasts_need_more_and_steadier_tasks_vary_less() -> None:
    source = BetaRates(1.1, 0.32)
    one, three, saved = (
        Simulation(source, experiments=1000, **settings).detectable("gap", 168, 5).difference_pp
        for settings in ({}, {"contrasts": 3}, {"change": "fewer failures"})
    )
    assert one is not None
    assert three is not None
    assert saved is not None
    assert three > one + 0.5
    assert saved > one + 0.5


def test_steadier_closes_the_gap_and_hardly_moves_the_mean() -> None:
    """As published: 24.4 to 12.0 points, with Mean@5 3.6 points higher."""
    rates = BetaRates(1.1, 0.32).draw(np.random.default_rng(3), 1, 20_000).rates
    effect = Simulation(BetaRates(1.1, 0.32)).effect("gap", 12.4, 5)
    assert effect is not None
    steadier = changed_rates(rates, effect, "steadier")
    gap, after = (float((p - p**5).mean()) for p in (rates, steadier))
    assert 100 * (gap - after) == pytest.approx(12.4, abs=0.5)
    assert 0 < 100 * float(steadier.mean() - rates.mean()) < 4
    assert (
        changed_rates(np.array([0.0, 0.3, 0.5, 0.9, 1.0]), 1.0, "steadier").round(3) == [0, 0, 0.5, 1, 1]
    ).all()


def test_the_observed_mde_is_what_a_t_test_would_find() -> None:
    """Half-width and power: at the minimum detectable effect 80% of experiments reject."""
    random = np.random.default_rng(5)
    values = random.normal(0, 0.3, (60, 1))
    values = (values - values.mean()) / values.std(ddof=1) * 0.3
    mde = minimum_detectable_pp(mean_estimates(values, None, DIFFERENCE, method="cluster-t")[0]).value
    assert mde is not None
    again = random.normal(mde / 100, 0.3, (4000, 60))
    t = again.mean(axis=1) / (again.std(axis=1, ddof=1) / np.sqrt(60))
    assert (abs(t) > 2.001).mean() == pytest.approx(0.8, abs=0.02)


def test_more_tasks_more_power_and_the_plan_finds_the_fewest() -> None:
    simulation = Simulation(BetaRates(2.0, 0.7, 3, 0.5), experiments=1000)
    usage = Usage.of_trials([4, 6], [1000, 3000], [100, 300])
    few, many = needed(simulation, "mean_at_k", 6.0, [3, 8], usage=usage)
    assert few.tasks is not None
    assert many.tasks is not None
    assert few.power is not None
    assert few.power.power is not None
    assert many.tasks < few.tasks
    assert few.tasks % 3 == 0
    assert few.power.power >= 0.8
    fewer = simulation.power("mean_at_k", 6.0, round(few.tasks * 0.85), 3).power
    assert fewer is not None
    assert fewer < 0.8
    assert few.cost == price(few.tasks, 3, 2, usage)
    assert few.cost is not None
    assert (few.cost.trials, few.cost.calls) == (few.tasks * 6, few.tasks * 30)
    assert few.cost.prompt_tokens == few.tasks * 12_000
    assert price(10, 2, 4, None).calls is None


def test_asked_twice_it_answers_the_same() -> None:
    one, other = (Simulation(BetaRates(2, 1), experiments=200).power("gap", 8, 50, 5) for _ in range(2))
    assert one == other


def test_what_cannot_be_planned() -> None:
    simulation = Simulation(BetaRates(2.0, 0.7, 3), experiments=200)
    assert simulation.power("gap", 5, 27, 5).reason is Reason.FEW_CLUSTERS
    assert simulation.power("gap", 60, 90, 5).reason is Reason.UNREACHABLE
    assert needed(simulation, "gap", 60, [5])[0].reason is Reason.UNREACHABLE
    assert needed(simulation, "gap", 0.3, [5])[0].reason is Reason.TOO_MANY_TASKS
    assert simulation.detectable("gap", 9, 5).reason is Reason.FEW_CLUSTERS
    perfect = Simulation(GivenRates([1.0] * 20), experiments=100)
    assert perfect.power("mean_at_k", 1, 50, 5).reason is Reason.UNREACHABLE
    assert perfect.detectable("mean_at_k", 50, 5).reason is Reason.UNREACHABLE
    with pytest.raises(ValueError, match="no gap"):
        simulation.power("gap", 5, 90, 1)
    with pytest.raises(ValueError, match="above 0"):
        simulation.power("gap", 0, 90, 5)
    with pytest.raises(ValueError, match="above 0"):
        BetaRates(0, 1)
    with pytest.raises(ValueError, match="alpha"):
        Simulation(BetaRates(1, 1), alpha=0)
    with pytest.raises(ValueError, match="0 to 1"):
        GivenRates([1.2])
    with pytest.raises(ValueError, match="no valid trial"):
        StoredRates([[1, 0]])
    with pytest.raises(ValueError, match="no stored trial"):
        Usage.of_trials([], [], [])


@pytest.mark.parametrize(("alpha", "beta"), [(2.0, 0.7), (1.1, 0.32), (9.0, 0.5)])
def test_rates_of_a_stored_execution_keep_the_gap(alpha: float, beta: float) -> None:
    """From 5 runs: raw shares shrink the expected gap; the posterior keeps it."""
    random = np.random.default_rng(41)
    truth = random.beta(alpha, beta, 5000)
    table = np.where(random.random((5, 5000)) < truth, 3, 2)
    drawn = StoredRates(table).draw(random, 20, 1000).rates
    gap = float((truth - truth**5).mean())
    assert float((drawn - drawn**5).mean()) == pytest.approx(gap, abs=0.02)
    raw = GivenRates((table == 3).mean(axis=0)).draw(random, 20, 1000).rates
    assert float((raw - raw**5).mean()) < 0.8 * gap
    assert StoredRates(np.array([[3, 1], [3, 0]])).draw(random, 1, 30).rates.shape == (1, 30, 1)


def test_fitted_beta() -> None:
    random = np.random.default_rng(42)
    passes = random.binomial(5, random.beta(2.0, 0.7, 20_000))
    alpha, beta = fit_beta(passes, np.full(20_000, 5))
    assert (alpha, beta) == (pytest.approx(2.0, rel=0.1), pytest.approx(0.7, rel=0.1))
    assert fit_beta(np.full(9, 5), np.full(9, 5))[1] > 0


def test_clusters_are_drawn_whole_and_of_their_own_size() -> None:
    source = GivenRates([0.1, 0.2, 0.3, 0.9, 0.9], ["a", "a", "a", "b", "b"])
    drawn = source.draw(np.random.default_rng(1), 1, 400)
    assert source.cluster_size == 2.5
    sizes = drawn.present[0].sum(axis=1)
    assert set(sizes) == {2.0, 3.0}
    assert (drawn.rates[0][sizes == 3] == [0.1, 0.2, 0.3]).all()
    assert (drawn.rates[0][sizes == 2][:, :2] == 0.9).all()


def test_shared_cluster_rates_correlate_and_keep_their_beta() -> None:
    source = BetaRates(2.0, 0.7, 3, 0.8)
    rates = source.draw(np.random.default_rng(2), 1, 40_000).rates[0]
    assert np.corrcoef(rates[:, 0], rates[:, 1])[0, 1] == pytest.approx(0.64, abs=0.02)
    assert rates.mean() == pytest.approx(source.power_mean(1), abs=0.005)
    assert (rates**5).mean() == pytest.approx(source.power_mean(5), abs=0.007)
    assert BetaRates.from_mean(0.75, 2.0) == BetaRates(1.5, 0.5)
