"""Task and scenario goal completion as the report shows it: the same columns on a terminal, in Markdown and HTML."""

from collections.abc import Callable
from typing import Any

from xspec.analysis.goal_completion import GoalCompletion
from xspec.analysis.intervals import Estimate
from xspec.report.model import Arm, Group
from xspec.report.sentences import DASH, arm_names, number

GOALS = (
    "TGC: tasks that pass in a run; SGC: scenarios all of whose tasks do; means over the runs, of the scenarios of "
    "which every task was chosen and every trial is valid."
)


def has_goals(group: Group) -> bool:
    """Whether its tasks come in scenarios of several tasks."""
    return any(arm.statistics.goals is not None for arm in group.arms)


Column = tuple[str, Callable[[Arm], str]]


def goal_columns(group: Group) -> tuple[list[Column], list[Column]]:
    """Heading and cell of each column: of all tasks, and by difficulty. A dash for an arm without scenarios."""
    difficulties = dict.fromkeys(
        label for arm in group.arms if arm.statistics.goals for label in arm.statistics.goals.by_difficulty
    )
    of_all = [
        ("TGC\n%", _valid(lambda found: number(found.tgc.value))),
        ("SGC\n%", _valid(lambda found: number(found.sgc.value))),
        ("SGC\n95%", _valid(lambda found: _interval(found.sgc))),
        ("SGC %,\ninv.=fail", _as_fail),
        ("scenarios\ncomplete", _valid(lambda found: f"{found.complete} of {found.scenarios}")),
    ]
    return of_all, [(f"SGC %,\n{label}", _of_difficulty(label)) for label in difficulties]


def goal_rows(group: Group) -> list[list[str]]:
    """A row an arm, the arm's name first."""
    names = arm_names(group)
    columns = [column for part in goal_columns(group) for column in part]
    return [[names[arm.spec_id], *(cell(arm) for _, cell in columns)] for arm in group.arms]


def goal_headings(group: Group) -> list[str]:
    return ["arm", *(" ".join(heading.split()) for part in goal_columns(group) for heading, _ in part)]


def goals_data(arm: Arm) -> dict[str, Any] | None:
    """For JSON; null where clusters have one task each."""
    goals = arm.statistics.goals
    if goals is None:
        return None
    return {
        "valid_only": _data(goals.valid_only),
        "invalid_as_fail": _data(goals.invalid_as_fail),
        "by_difficulty": [{"difficulty": d, **_data(found)} for d, found in goals.by_difficulty.items()],
    }


def _data(found: GoalCompletion) -> dict[str, Any]:
    return {
        "scenarios": found.scenarios,
        "scenarios_complete": found.complete,
        "tasks": found.tasks,
        "tgc_pct": found.tgc.value,
        "tgc_pct_ci95": _ends(found.tgc),
        "sgc_pct": found.sgc.value,
        "sgc_pct_ci95": _ends(found.sgc),
        "reason": None if found.sgc.reason is None else str(found.sgc.reason),
        "run_tgc_pct": list(found.run_tgc_pct),
        "run_sgc_pct": list(found.run_sgc_pct),
    }


def _ends(estimate: Estimate) -> list[float] | None:
    return None if estimate.interval is None else [estimate.interval.low, estimate.interval.high]


def _valid(cell: Callable[[GoalCompletion], str]) -> Callable[[Arm], str]:
    return lambda arm: DASH if (goals := arm.statistics.goals) is None else cell(goals.valid_only)


def _as_fail(arm: Arm) -> str:
    goals = arm.statistics.goals
    return DASH if goals is None else number(goals.invalid_as_fail.sgc.value)


def _of_difficulty(label: str) -> Callable[[Arm], str]:
    def cell(arm: Arm) -> str:
        goals = arm.statistics.goals
        found = None if goals is None else goals.by_difficulty.get(label)
        return DASH if found is None else number(found.sgc.value)

    return cell


def _interval(estimate: Estimate) -> str:
    interval = estimate.interval
    return DASH if interval is None else f"{number(interval.low)}{DASH}{number(interval.high)}"
