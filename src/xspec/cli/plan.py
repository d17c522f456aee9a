"""`python -m xspec plan`: tasks and runs an experiment needs, what it costs, and what the one at hand could see."""

import json

from xspec.analysis.plan import needed
from xspec.analysis.power import Change, Simulation
from xspec.cli.parser import VerbParser
from xspec.cli.plan_basis import basis_of
from xspec.cli.plan_shown import METRICS, Plan, plans_data, print_plans
from xspec.errors import UserError
from xspec.report.output import Output

_CHANGES: tuple[Change, ...] = ("fewer failures", "steadier")
_EXPERIMENTS = 2_000
# Beyond these a simulation takes more memory or time than an answer is worth.
_MOST = {"tasks": 10_000, "cluster_size": 100, "contrasts": 100}


def main(arguments: list[str]) -> int:
    parser = VerbParser(
        prog="python -m xspec plan",
        description="How many tasks and runs find a difference, and the smallest difference that a size finds.",
    )
    parser.add_argument(
        "--difference", type=float, default=10.0, metavar="D", help="points to see (default 10)"
    )
    parser.add_argument("--metric", choices=tuple(METRICS), default="gap")
    parser.add_argument(
        "--power", type=float, default=0.8, metavar="P", help="chance to find it (default 0.8)"
    )
    parser.add_argument("--k", default="3,5,10", metavar="K,…", help="runs to consider (default 3,5,10)")
    parser.add_argument(
        "--tasks", type=int, metavar="N", help="tasks at hand (default: those of --from, else 92)"
    )
    parser.add_argument("--arms", type=int, default=2, metavar="N", help="arms to pay for (default 2)")
    parser.add_argument(
        "--contrasts", type=int, default=1, metavar="N", help="tests that share 5% (default 1)"
    )
    parser.add_argument("--from", dest="stored", metavar="ID", help="a stored spec or execution to plan from")
    parser.add_argument("--mean", type=float, metavar="M", help="instead: assumed Mean@k in percent")
    parser.add_argument(
        "--spread",
        type=float,
        default=1.4,
        metavar="S",
        help="with --mean: alpha + beta of the Beta (default 1.4)",
    )
    parser.add_argument("--cluster-size", type=int, default=1, metavar="N", help="assumed tasks in a cluster")
    parser.add_argument("--store", default="mlruns", metavar="PATH")
    parser.add_argument("--format", choices=("table", "json"), default="table")
    options = parser.parse_args(arguments)
    ks = _runs(options.k)
    if not 0 < options.difference < 100 or not 0.05 < options.power < 1 or options.arms < 1:
        raise UserError(
            "--difference is between 0 and 100 points, --power between 0.05 and 1, --arms 1 or more"
        )
    for name, most in _MOST.items():
        value = getattr(options, name)
        if value is not None and not 1 <= value <= most:
            raise UserError(f"--{name.replace('_', '-')} {value}: give 1 to {most:,}")
    metric = METRICS[options.metric]
    if metric == "gap" and 1 in ks:
        raise UserError("--k 1: with one run there is no gap; give 2 or more, or --metric mean")
    basis = basis_of(options)
    tasks = options.tasks or basis.tasks
    at_k = basis.k if options.stored or basis.k in ks else ks[0]
    if metric == "gap" and at_k == 1:
        at_k = ks[0]
    plans = []
    for change in _CHANGES if metric == "gap" else _CHANGES[:1]:
        simulation = Simulation(
            basis.source, contrasts=options.contrasts, change=change, experiments=_EXPERIMENTS
        )
        found = needed(
            simulation,
            metric,
            options.difference,
            ks,
            power=options.power,
            arms=options.arms,
            usage=basis.usage,
        )
        plans.append(Plan(change, found, simulation.detectable(metric, tasks, at_k, options.power)))
    if options.format == "json":
        print(json.dumps(plans_data(basis, options, plans), indent=2, ensure_ascii=False, allow_nan=False))
    else:
        print_plans(basis, options, plans, Output(highlight=False))
    return 0


def _runs(text: str) -> list[int]:
    try:
        ks = sorted({int(part) for part in text.split(",")})
    except ValueError:
        ks = []
    if not ks or ks[0] < 1 or ks[-1] > 1000:
        raise UserError(f"--k {text}: give numbers of runs like 3,5,10")
    return ks
