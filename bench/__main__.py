"""Runs every bench and says of each figure whether it meets its bar. Exit code 1 if one does not."""

import json
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

BARS: dict[str, list[tuple[str, str, float]]] = {
    "call_path": [
        ("CPU a model call, whole path ÷ plain openai client", "ratio", 0.4),
        ("CPU of the guard ÷ one orjson.loads of the body", "guard.ratio", 3.0),
    ],
}
"""Module → (what it is, path in its JSON, the most it may be)."""


def main() -> int:
    """Runs the modules named on the command line, or all."""
    console = Console(width=100)
    table = Table("figure", "measured", "bar", "")
    missed = 0
    for module in sys.argv[1:] or BARS:
        done = subprocess.run(
            [sys.executable, "-m", f"bench.{module}"],
            cwd=Path(__file__).parents[1],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        data = json.loads(done.stdout)
        console.print_json(data=data)
        for what, path, bar in BARS[module]:
            value = data
            for part in path.split("."):
                value = value[part]
            ok = value <= bar
            missed += not ok
            table.add_row(what, f"{value:.3g}", f"≤ {bar:g}", "ok" if ok else "MISSED")
    console.print(table)
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
