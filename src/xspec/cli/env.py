"""`python -m xspec env`: environments of their own for benchmarks and tools that cannot live in xspec's."""

import time

from xspec.benchmarks import environment_making, environments
from xspec.cli.parser import VerbParser
from xspec.cli.say import say


def main(arguments: list[str]) -> int:
    parser = VerbParser(
        prog="python -m xspec env",
        description="Environments with pinned packages of their own, made with uv.",
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    verbs.add_parser("list", help="which there are, and which are made")
    for verb, what in (
        ("create", "make it; does nothing if it is there"),
        ("check", "does it hold the pinned versions, and does it run?"),
        ("remove", "remove it"),
    ):
        verbs.add_parser(verb, help=what).add_argument("name", metavar="NAME")
    options = parser.parse_args(arguments)
    if options.verb == "list":
        return _list()
    action = {"create": _create, "check": _check, "remove": _remove}[options.verb]
    return action(options.name)


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


def _check(name: str) -> int:
    wrong = environment_making.check(name)
    for line in wrong:
        print(f"{name}: {line}")
    if wrong:
        print(
            f"{name}: make it anew with: python -m xspec env remove {name}, then {environments.create_command(name)}"
        )
        return 3
    print(f"{name}: {_version(name)} and all pinned packages, and it runs")
    return 0


def _remove(name: str) -> int:
    removed = environment_making.remove(name)
    print(f"{name} is removed" if removed else f"{name} was not there")
    return 0


def _version(name: str) -> str:
    package = environments.entry(name).package
    found = environments.installed_version(environments.environments_folder() / name, package)
    return f"{package} {found}"
