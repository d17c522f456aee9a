"""The statistics of the report as plain data for JSON: a value, its 95% interval, and a reason where one is missing."""

from collections.abc import Mapping
from typing import Any

from xspec.analysis.arm import ArmFigures
from xspec.analysis.attribution import Attribution
from xspec.analysis.chains import Divergence
from xspec.analysis.compare import Comparison
from xspec.analysis.contrast import Contrast
from xspec.analysis.factorial import FactorialEffect
from xspec.analysis.intervals import Estimate
from xspec.analysis.reasons import Figure
from xspec.report.goals import goals_data
from xspec.report.model import Arm, Group
from xspec.report.sentences import arm_names

EFFECT_NAMES = {"first": "guide", "second": "route", "interaction": "guide x route"}
METRIC_NAMES = {
    "mean_at_k": "mean_at_k_pct",
    "pass_hat_k": "pass_hat_k_pct",
    "pass_at_k": "pass_at_k_pct",
    "gap": "gap_pp",
    "flip_rate": "flip_rate_pct",
    "disagreement": "disagreement_pct",
}


def intervals(arm: Arm) -> dict[str, Any]:
    """`…_ci95` of each figure: [low, high] or null."""
    return {
        f"{METRIC_NAMES[metric]}_ci95": _ci(estimate)
        for metric, estimate in arm.statistics.estimates.valid_only.items()
    }


def arm_statistics(arm: Arm) -> dict[str, Any]:
    """What an arm has beyond the figures of its executions."""
    statistics = arm.statistics
    counts = statistics.reconciliation
    return {
        "figures": _estimates(statistics.estimates),
        "by_group": [
            {"by": by, "group": label, "tasks": figures.figures.tasks, **_estimates(figures)}
            for by, groups in statistics.groups.items()
            for label, figures in groups.items()
        ],
        "goal_completion": goals_data(arm),
        "reconciliation": {
            "agrees": counts.agrees,
            "trials_expected": counts.trials_expected,
            "trials_counted": counts.trials_counted,
            "calls": counts.calls,
            "ledger_calls": counts.ledger_calls,
            "attempts": counts.attempts,
            "ledger_attempts": counts.ledger_attempts,
            "idle_passes": counts.idle_passes,
        },
        "failures": [
            {
                "blame": cause.blame,
                "outcome": cause.outcome,
                "cause": cause.cause,
                "trials": cause.trials,
                "sample": [{"run": t.run, "task": t.task, "detail": t.detail} for t in cause.sample],
            }
            for cause in statistics.failures
        ],
        "runs": [
            {
                "run": run.run,
                "pass_pct": run.pass_pct,
                "retry_count": run.retry_count,
                "total_tokens": run.total_tokens,
            }
            for run in statistics.review.runs
        ],
        "outlier_runs": [
            {
                "run": one.run,
                "figure": one.figure,
                "value": one.value,
                "median": one.median,
                "score": one.score,
                "look_at": str(one.look_at),
            }
            for one in statistics.review.outliers
        ],
        "run_noise": {
            "se_pp": statistics.noise.se_pp.value,
            "threshold_pp": statistics.noise.threshold_pp,
            "chance": statistics.noise.chance.value,
        },
        "executed_again": [
            {
                "execution_id": execution_id,
                "chance_by_noise": aa.chance_by_noise.value,
                "extra_sd_pp": aa.extra_sd_pp.value,
                "differences": [
                    {"metric": METRIC_NAMES[c.metric], **_contrast(c.contrast)} for c in aa.comparisons
                ],
            }
            for execution_id, aa in statistics.aa.items()
        ],
        "divergence": {level: _divergence(d) for level, d in statistics.divergence.items()} or None,
        "attribution": [_attribution(one) for one in statistics.attribution],
        "drift_events": []
        if arm.record.steps is None
        else [
            {"run": e.run, "task": e.task, "step": e.step, "member": e.member, "what": list(e.notes)}
            for e in arm.record.steps.drift
        ],
    }


def comparisons(group: Group) -> list[dict[str, Any]]:
    """Every pair of arms in every metric, `b` minus `a`. `leads` marks the way of counting that fits the pair."""
    names = arm_names(group)
    leading = {(pair.a, pair.b): pair.leads_as_fail for pair in group.statistics.pairs}
    return [_comparison(c, group.index, names, leading) for c in group.statistics.comparisons]


def effects(group: Group) -> list[dict[str, Any]]:
    """Main effects and interaction of a 2x2; empty if the group is none."""
    return [_effect(effect, group.index) for effect in group.statistics.effects]


def invalid_shares(group: Group) -> list[dict[str, Any]]:
    """The difference in invalid trials of every pair."""
    names = arm_names(group)
    return [
        {
            "group": group.index,
            "a": names[pair.a],
            "b": names[pair.b],
            "a_pct": share.a_pct.value,
            "b_pct": share.b_pct.value,
            **_contrast(share.contrast),
        }
        for pair, share in zip(group.statistics.pairs, group.statistics.invalid, strict=True)
    ]


def _comparison(
    c: Comparison, group: int, names: Mapping[str, str], leading: Mapping[tuple[str, str], bool]
) -> dict[str, Any]:
    return {
        "group": group,
        "a": names[c.a],
        "b": names[c.b],
        "a_spec_id": c.a,
        "b_spec_id": c.b,
        "metric": METRIC_NAMES[c.metric],
        "invalid_as_fail": c.invalid_as_fail,
        "leads": leading[c.a, c.b] == c.invalid_as_fail,
        **_contrast(c.contrast, c.p_holm, str(c.verdict)),
        "tasks": c.tasks,
        "tasks_left_out": len(c.left_out),
    }


def _effect(e: FactorialEffect, group: int) -> dict[str, Any]:
    return {
        "group": group,
        "effect": EFFECT_NAMES[e.effect],
        "metric": METRIC_NAMES[e.metric],
        "invalid_as_fail": e.invalid_as_fail,
        **_contrast(e.contrast, e.p_holm, str(e.verdict)),
        "tasks": e.tasks,
    }


def _contrast(contrast: Contrast, p_holm: Figure | None = None, verdict: str | None = None) -> dict[str, Any]:
    difference = contrast.difference
    reason = difference.reason or contrast.p.reason
    return {
        "difference_pp": difference.value,
        "ci95": _ci(difference),
        "p": contrast.p.value,
        "p_holm": None if p_holm is None else p_holm.value,
        "mde_pp": contrast.mde_pp.value,
        "margin_pp": contrast.margin_pp,
        "p_equivalent": contrast.p_equivalent.value,
        "verdict": str(contrast.verdict()) if verdict is None else verdict,
        "reason": None if reason is None else str(reason),
    }


def _estimates(figures: ArmFigures) -> dict[str, Any]:
    return {
        name: {METRIC_NAMES[metric]: _estimate(estimate) for metric, estimate in found.items()}
        for name, found in (
            ("valid_only", figures.valid_only),
            ("invalid_as_fail", figures.invalid_as_fail),
        )
    }


def _estimate(estimate: Estimate) -> dict[str, Any]:
    return {
        "value": estimate.value,
        "ci95": _ci(estimate),
        "method": None if estimate.interval is None else estimate.interval.method,
        "tasks": estimate.tasks,
        "clusters": estimate.clusters,
        "reason": None if estimate.reason is None else str(estimate.reason),
    }


def _ci(estimate: Estimate) -> list[float] | None:
    return None if estimate.interval is None else [estimate.interval.low, estimate.interval.high]


def _divergence(divergence: Divergence) -> dict[str, Any]:
    return {
        "tasks": len(divergence.tasks),
        "mean_distinct_chains": divergence.mean_distinct_chains.value,
        "divergent_share": divergence.divergent_share.value,
        "mean_similarity": divergence.mean_similarity.value,
        "first_divergent_steps": list(divergence.first_steps),
        "agreement": [
            {"step": a.step, "at_risk": a.at_risk, "parted": a.parted, "together": a.together}
            for a in divergence.agreement
        ],
    }


def _attribution(one: Attribution) -> dict[str, Any]:
    return {
        "events": one.kind,
        "exposed": one.exposed,
        "exposed_parted": one.exposed_parted,
        "unexposed": one.unexposed,
        "unexposed_parted": one.unexposed_parted,
        "hazard_ratio": one.hazard_ratio.value,
        "hazard_ratio_ci95": None if one.hazard_ratio_interval is None else list(one.hazard_ratio_interval),
        "attributable_share": one.attributable_share.value,
        "attributable_share_ci95": None
        if one.attributable_share_interval is None
        else list(one.attributable_share_interval),
        "clusters": one.clusters,
        "reason": None if (reason := one.reason or one.hazard_ratio.reason) is None else str(reason),
    }
