"""`python -m xspec env`: environments of their own for benchmarks and tools that cannot live in xspec's."""

import asyncio
import time
from collections.abc import Sequence

from xspec.benchmarks import BENCHMARKS, environment_making, environments
from xspec.benchmarks.checks import TaskCheck, check_tasks, unexplained
from xspec.benchmarks.confinement import enforced
from xspec.benchmarks.pool import WorkerPool
from xspec.cli.parser import VerbParser
from xspec.cli.say import say
from xspec.counted import counted
from xspec.spec.compose import compose
from xspec.spec.config import validate_config

CHECK_MEMBERS = 2


def main(arguments: list[str]) -> int:
    parser = VerbParser(
        prog="python -m xspec env",
        description="Environments with pinned packages of their own, made with uv.",
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    verbs.add_parser("list", help="which there are, and which are made")
    for verb, what in (
        ("create", "make it; does nothing if it is there"),
        ("check", "does it hold the pinned versions and run? do verdicts of its benchmark mean something?"),
        ("remove", "remove it"),
    ):
        verbs.add_parser(verb, help=what).add_argument("name", metavar="NAME")
    verbs.choices["check"].add_argument(
        "overrides",
        nargs="*",
        metavar="OVERRIDE",
        help="whose tasks are checked: benchmark.split=test_normal",
    )
    options = parser.parse_args(arguments)
    if options.verb == "list":
        return _list()
    if options.verb == "check":
        return _check(options.name, options.overrides)
    return {"create": _create, "remove": _remove}[options.verb](options.name)


def _list() -> int:
    for name, entry in environments.ENVIRONMENTS.items():
        made = environments.record(name)
        folder = environments.environments_folder() / name
        if made is None:
            state = f"not made; {environments.create_command(name)}"
        elif made.get("requirements") != environments.requirements_digest(name):
            state = f"out of date; {environments.create_command(name)}"
        else:
            state = f"{_version(name)}, Python {made.get('python')}, in {folder}"
        print(f"{name:<10} {entry.what}: {state}")
    return 0


def _create(name: str) -> int:
    environments.entry(name)
    say(f"making the environment {name} in {environments.environments_folder()}")
    began = time.monotonic()
    if environment_making.create(name):
        print(f"{name} is made: {_version(name)}, in {time.monotonic() - began:.0f} s")
    else:
        print(f"{name} is there already: {_version(name)}")
    return 0


def _check(name: str, overrides: Sequence[str]) -> int:
    wrong = environment_making.check(name)
    for line in wrong:
        print(f"{name}: {line}")
    if wrong:
        print(
            f"{name}: make it anew with: python -m xspec env remove {name}, then {environments.create_command(name)}"
        )
        return 3
    print(f"{name}: {_version(name)} and all pinned packages, and it runs")
    codes = [_check_tasks(kind, overrides) for kind, at in BENCHMARKS.items() if at.environment == name]
    return max(codes, default=0)


def _check_tasks(kind: str, overrides: Sequence[str]) -> int:
    """Opens two worlds of every task: one in which nothing is done, one in which the known solution is played."""
    if BENCHMARKS[kind].keeps_output:
        print(f"{kind}: code of a model runs confined; {enforced()}")
    benchmark = validate_config(compose([f"benchmark={kind}", *overrides])).benchmark

    async def checked() -> list[TaskCheck]:
        given = benchmark.version, benchmark.split, benchmark.settings
        async with WorkerPool(benchmark.kind, *given, members=CHECK_MEMBERS, log=None) as pool:
            return await check_tasks(pool)

    checks = asyncio.run(checked())
    solved = [check for check in checks if check.solution is not None]
    wrong = unexplained(solved, [item.task for item in benchmark.exclude])
    wrong += [
        f"{check.task} passes when nothing is done"
        for check in checks
        if check.solution is None and check.do_nothing is not False
    ]
    for line in wrong:
        print(f"{kind}: {line}")
    if not wrong:
        print(f"{kind}: doing nothing fails in all of {counted(len(checks), 'task')} of {benchmark.split}")
        print(f"{kind}: the known solution passes wherever there is one, in {counted(len(solved), 'task')}")
    return 3 if wrong else 0


def _remove(name: str) -> int:
    removed = environment_making.remove(name)
    print(f"{name} is removed" if removed else f"{name} was not there")
    return 0


def _version(name: str) -> str:
    package = environments.entry(name).package
    found = environments.installed_version(environments.environments_folder() / name, package)
    return f"{package} {found}"
