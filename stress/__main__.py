"""Runs the parts named on the command line, or all; prints a table and JSON. Exit code 1 if anything does not hold."""

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from stress import calls, kills, replies, surroundings
from stress.line import Line

PARTS = ("calls", "kills", "replies", "surroundings")


def main() -> int:
    """Everything is on loopback and below one temporary folder, which is removed if all holds."""
    parser = argparse.ArgumentParser(prog="python -m stress")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)} (all)")
    parser.add_argument("--calls", type=int, default=10_000, help="model calls under faults (%(default)s)")
    parser.add_argument("--kills", type=int, default=100, help="SIGKILLs (%(default)s)")
    parser.add_argument(
        "--seed", type=int, default=20261130, help="of the moments of the kills (%(default)s)"
    )
    options = parser.parse_args()
    unknown = set(options.parts) - set(PARTS)
    if unknown:
        parser.error(f"there is no part {min(unknown)}; parts are {', '.join(PARTS)}")
    root = Path(tempfile.mkdtemp(prefix="xspec-stress-"))
    runs: dict[str, Callable[[], list[Line]]] = {
        "calls": lambda: calls.run(root, calls=options.calls),
        "kills": lambda: kills.run(root, kills=options.kills, seed=options.seed),
        "replies": lambda: replies.run(root),
        "surroundings": lambda: surroundings.run(root),
    }
    lines: list[Line] = []
    seconds = {}
    for part in options.parts or PARTS:
        began = time.monotonic()
        found = runs[part]()
        lines += found
        seconds[part] = round(time.monotonic() - began, 1)
        _print(part, found)  # at once: what a later part does cannot take it away
        print(f"stress: {part} took {seconds[part]:g} s", file=sys.stderr)
    wrong = sum(not line.ok for line in lines)
    print(
        json.dumps({"wrong": wrong, "seconds": seconds, "lines": [asdict(line) for line in lines]}, indent=1)
    )
    if wrong:
        print(f"stress: {wrong} lines do not hold; what was written is in {root}", file=sys.stderr)
    else:
        shutil.rmtree(root)
    return 1 if wrong else 0


def _print(part: str, lines: list[Line]) -> None:
    table = Table("what", "expected", "seen", "", title=f"xspec under stress: {part}")
    for line in lines:
        table.add_row(line.what, line.expected, line.seen, "ok" if line.ok else "WRONG")
    Console(width=160).print(table)


if __name__ == "__main__":
    raise SystemExit(main())
