"""The rows of the page's tables and drawings that show figures."""

from typing import Any

from xspec.analysis.contrast import Contrast, Verdict
from xspec.analysis.intervals import Estimate
from xspec.counted import counted
from xspec.report.held import held
from xspec.report.json_statistics import EFFECT_NAMES
from xspec.report.model import Arm, Group
from xspec.report.sentences import arm_names, span

_METRICS = (
    ("gap", "gap"),
    ("mean_at_k", "Mean@{k}"),
    ("pass_hat_k", "Pass^{k}"),
    ("disagreement", "disagreement"),
)
_VERDICTS = {
    Verdict.HIGHER: "higher",
    Verdict.LOWER: "lower",
    Verdict.EQUIVALENT: "no change, within the margin",
    Verdict.INCONCLUSIVE: "cannot tell",
    Verdict.UNDEFINED: "cannot be said",
}


def arm_rows(group: Group) -> list[dict[str, Any]]:
    """One an arm: the points of its dumbbell in percent, and what was held while it was measured."""
    names = arm_names(group)
    return [_arm(arm, names[arm.spec_id]) for arm in group.arms]


def _arm(arm: Arm, name: str) -> dict[str, Any]:
    estimates = arm.statistics.estimates
    fixed = held(arm.record.spec)
    sampling = ", ".join(f"{field} {_short(value)}" for field, value in fixed["sampling"].items())
    statuses = ", ".join(map(str, fixed["retry_statuses"]))
    return {
        "name": name,
        "arm": arm,
        "when": span(arm.chosen),
        "pass_hat": estimates.valid_only["pass_hat_k"],
        "mean": estimates.valid_only["mean_at_k"],
        "pass_at": estimates.valid_only["pass_at_k"],
        "gap": estimates.valid_only["gap"],
        "gap_as_fail": estimates.invalid_as_fail["gap"],
        "members": fixed["members"],
        "held": [
            f"{fixed['mode']} route",
            sampling or "no sampling field sent",
            f"up to {counted(fixed['max_attempts'], 'attempt')} ({statuses}), time-out {fixed['timeout_s']:g} s",
            _guide(arm),
        ],
        "counts": arm.statistics.reconciliation,
        "attribution": arm.statistics.attribution,
        "divergence": arm.statistics.divergence,
    }


def _guide(arm: Arm) -> str:
    if arm.scope is None:
        return "guide" if arm.guided else "no guide"
    return f"guide of {counted(arm.scope.rules, 'rule')}: {arm.scope.text()}"


def _short(value: Any) -> Any:
    return f"{value:g}" if isinstance(value, float) else value


def comparison_rows(group: Group) -> list[dict[str, Any]]:
    """Every pair in the four metrics that are read together, counting invalid trials as the pair wants."""
    names = arm_names(group)
    rows = []
    for pair, invalid in zip(group.statistics.pairs, group.statistics.invalid, strict=True):
        cells = []
        for metric, title in _METRICS:
            found = group.statistics.leading(pair, metric)
            cells.append(_cell(title.format(k=group.k), found.contrast, found.p_holm.value, found.verdict))
        rows.append(
            {
                "a": names[pair.a],
                "b": names[pair.b],
                "as_fail": pair.leads_as_fail,
                "tasks": group.statistics.leading(pair, "gap").tasks,
                "metrics": cells,
                "invalid": invalid,
            }
        )
    return rows


def effect_rows(group: Group) -> list[dict[str, Any]]:
    """Main effects and interaction; the guide's by valid trials, what involves the route by invalid as failed."""
    rows = []
    for effect, name in EFFECT_NAMES.items():
        as_fail = effect != "first"
        cells = []
        tasks = 0
        for metric, title in _METRICS:
            found = group.statistics.effect(effect, metric, invalid_as_fail=as_fail)
            if found is not None:
                cells.append(
                    _cell(title.format(k=group.k), found.contrast, found.p_holm.value, found.verdict)
                )
                tasks = found.tasks
        if cells:
            rows.append(
                {
                    "name": name.replace(" x ", " \N{MULTIPLICATION SIGN} "),
                    "as_fail": as_fail,
                    "tasks": tasks,
                    "metrics": cells,
                }
            )
    return rows


def _cell(title: str, contrast: Contrast, p_holm: float | None, verdict: Verdict) -> dict[str, Any]:
    return {
        "metric": title,
        "contrast": contrast,
        "p_holm": p_holm,
        "verdict": _VERDICTS[verdict],
        "found": verdict in (Verdict.HIGHER, Verdict.LOWER),
    }


def group_rows(group: Group) -> list[dict[str, Any]]:
    """Gap and Mean@k by stratum and difficulty, a cell an arm."""
    rows = []
    for by in ("stratum", "difficulty"):
        labels = dict.fromkeys(label for arm in group.arms for label in arm.statistics.groups.get(by, {}))
        for label in labels:
            cells: list[tuple[Estimate, Estimate] | None] = []
            tasks = 0
            for arm in group.arms:
                figures = arm.statistics.groups.get(by, {}).get(label)
                cells.append(
                    None if figures is None else (figures.valid_only["gap"], figures.valid_only["mean_at_k"])
                )
                tasks = max(tasks, figures.figures.tasks if figures else 0)
            rows.append({"by": by, "label": label, "tasks": tasks, "cells": cells})
    return rows


def divergence_bars(group: Group) -> dict[str, Any] | None:
    """By arm, how many tasks part first at each step, on one scale; None where no step is known."""
    arms = [(name, arm) for arm, name in zip(group.arms, arm_names(group).values(), strict=True)]
    known = [
        (name, arm.statistics.divergence["arguments"]) for name, arm in arms if arm.statistics.divergence
    ]
    if not known:
        return None
    width = max((len(d.first_steps) for _, d in known), default=0)
    highest = max((count for _, d in known for count in d.first_steps), default=1)
    return {
        "steps": width,
        "highest": max(highest, 1),
        "arms": [
            {"name": name, "counts": [*d.first_steps, *[0] * (width - len(d.first_steps))]}
            for name, d in known
        ],
    }


def run_rows(group: Group) -> list[dict[str, Any]]:
    """Retries, tokens and pass share of each run, with their share of the largest, and what stands out."""
    names = arm_names(group)
    runs = [run for arm in group.arms for run in arm.statistics.review.runs]
    most_retries = max((run.retry_count for run in runs), default=0) or 1
    most_tokens = max((run.total_tokens or 0 for run in runs), default=0) or 1
    rows = []
    for arm in group.arms:
        outliers = {(one.run, one.figure): one for one in arm.statistics.review.outliers}
        rows += [
            {
                "arm": names[arm.spec_id],
                "run": run,
                "retries_pct": 100 * run.retry_count / most_retries,
                "tokens_pct": 100 * (run.total_tokens or 0) / most_tokens,
                "outliers": {figure: one for (at, figure), one in outliers.items() if at == run.run},
            }
            for run in arm.statistics.review.runs
        ]
    return rows
