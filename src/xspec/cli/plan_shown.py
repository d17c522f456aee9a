"""Plans as a person reads them, and as JSON."""

from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from xspec.analysis.plan import Cost, Need, price
from xspec.analysis.power import Change, Detectable, PlannedMetric
from xspec.cli.plan_basis import Basis
from xspec.counted import counted
from xspec.report.sentences import DASH

METRICS: dict[str, PlannedMetric] = {"gap": "gap", "mean": "mean_at_k", "pass_hat": "pass_hat_k"}
_NAMES: dict[PlannedMetric, str] = {"gap": "the gap", "mean_at_k": "Mean@k", "pass_hat_k": "Pass^k"}
_WHAT = {
    "fewer failures": "the other arm saves an even share of the trials that fail",
    "steadier": "each task goes toward what it mostly does; Mean@k hardly moves",
}
_IF = {"fewer failures": "there are fewer failures", "steadier": "the other arm is steadier"}


@dataclass(frozen=True, slots=True)
class Plan:
    """For one assumed change: what is needed for each k, and what the experiment at hand could see."""

    change: Change
    needs: tuple[Need, ...]
    seen: Detectable


def print_plans(basis: Basis, options: Any, plans: list[Plan], console: Console) -> None:
    """A table for each assumed change, and what the experiment at hand could see."""
    metric = METRICS[options.metric]
    name = _NAMES[metric]
    if basis.simulated:
        console.print("SIMULATED MODEL: rates and usage are of a rehearsal.", style="bold yellow")
    console.print(f"From {basis.words}.", soft_wrap=True)
    for plan in plans:
        console.print()
        wanted = (
            f"To see {counted(options.difference, 'point')} in {name} with {100 * options.power:g}% power"
        )
        console.print(f"{wanted}, if {_IF[plan.change]}", style="bold", soft_wrap=True)
        console.print(f"({_WHAT[plan.change]})", soft_wrap=True)
        console.print(_table(basis, options.arms, plan.needs))
        for need in plan.needs:
            if need.cost is None:
                why = need.reason.sentence if need.reason else "unknown"
                console.print(f"k = {need.k}: {why}", soft_wrap=True)
        console.print(_seen(plan.seen, name, options.power), soft_wrap=True)
    console.print()
    if metric != "mean_at_k" and len(plans[0].needs) > 1:
        console.print(
            f"{name[0].upper()}{name[1:]} is another figure at every k: the same points are not the same change of "
            "the agent, so more runs need not mean fewer tasks.",
            soft_wrap=True,
        )
    if basis.usage is None:
        console.print("Calls and tokens are known only from a stored execution: --from ID.", soft_wrap=True)


def _table(basis: Basis, arms: int, needs: tuple[Need, ...]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    headers = ["runs k", "tasks", f"trials, {counted(arms, 'arm')}"]
    if basis.usage is not None:
        headers += ["calls", "prompt tokens", "completion tokens"]
    for header in headers:
        table.add_column(header, justify="right")
    for need in needs:
        cost = need.cost
        if cost is None:
            table.add_row(str(need.k), DASH)
            continue
        figures = (need.tasks, cost.trials, cost.calls, cost.prompt_tokens, cost.completion_tokens)
        table.add_row(str(need.k), *(f"{n:,}" for n in figures if n is not None))
    return table


def _seen(seen: Detectable, name: str, power: float) -> str:
    at = f"{counted(seen.tasks, 'task')}, k = {seen.k}"
    if seen.difference_pp is None:
        why = seen.reason.sentence if seen.reason else "unknown"
        return f"At hand ({at}): nothing can be seen with {100 * power:g}% power: {why}."
    smallest = f"{seen.difference_pp:.1f} points"
    return (
        f"At hand ({at}): the smallest difference in {name} seen with {100 * power:g}% power is {smallest}."
    )


def plans_data(basis: Basis, options: Any, plans: list[Plan]) -> dict[str, Any]:
    """The same for machines, with the reasons as tokens."""
    return {
        "plan_schema": 1,
        "simulated": basis.simulated,
        "from": basis.words,
        "metric": options.metric,
        "difference_pp": options.difference,
        "power": options.power,
        "arms": options.arms,
        "contrasts": options.contrasts,
        "plans": [
            {
                "change": plan.change,
                "assumes": _WHAT[plan.change],
                "needed": [_need(need) for need in plan.needs],
                "at_hand": {
                    "tasks": plan.seen.tasks,
                    "k": plan.seen.k,
                    "smallest_pp": plan.seen.difference_pp,
                    "reason": None if plan.seen.reason is None else str(plan.seen.reason),
                    "cost": _cost(price(plan.seen.tasks, plan.seen.k, options.arms, basis.usage)),
                },
            }
            for plan in plans
        ],
    }


def _need(need: Need) -> dict[str, Any]:
    power = None if need.power is None else need.power.power
    return {
        "k": need.k,
        "tasks": need.tasks,
        "power": power,
        "cost": None if need.cost is None else _cost(need.cost),
        "reason": None if need.reason is None else str(need.reason),
    }


def _cost(cost: Cost) -> dict[str, int | None]:
    return {
        "trials": cost.trials,
        "calls": cost.calls,
        "prompt_tokens": cost.prompt_tokens,
        "completion_tokens": cost.completion_tokens,
    }
