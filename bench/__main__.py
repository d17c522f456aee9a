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
    "gateway": [
        ("CPU a call, harness and gateway ÷ harness alone, plain", "plain.ratio", 1.5),
        ("CPU a call, harness and gateway ÷ harness alone, streamed", "streamed.ratio", 1.5),
        ("p99 latency added by the gateway, 16 at once: ms", "latency.added_p99_ms", 10),
        ("CPU seconds in which the ledger takes 500 calls", "ledger.seconds_for_500", 1),
    ],
    "whole_run": [
        ("the default sweep, 1,840 trials: wall seconds", "wall_s", 120),
        ("all its processes together: MB (PSS)", "peak_pss_mb", 1500),
        ("seconds from a warm command to the first model call", "first_call_s", 5),
        ("projecting 1,840 trials: CPU seconds", "projection_cpu_s", 10),
    ],
    "appworld": [
        ("AppWorld: CPU seconds to open and judge a world", "world_cpu_s", 0.5),
        ("AppWorld: private MB of a worker", "private_mb", 100),
        ("AppWorld: time a trial, 4 workers ÷ 1, answers in 200 ms", "time_ratio", 1 / 3),
    ],
    "report_html": [
        ("analysis and HTML report of 4 x 168 x 5: CPU seconds", "cpu_s", 5),
        ("that page: MB", "html_mb", 5),
    ],
    "analysis": [
        ("analysis of 4 x 168 x 5, 10,000 resamples: CPU seconds", "cpu_s", 1),
        ("its CPU ÷ the slow reference's", "ratio", 0.02),
    ],
    "store": [
        ("report over a million attempts: seconds", "largest.report_s", 5),
        ("report over a million attempts: MB", "largest.report_mb", 1000),
        ("a group-by query over them: seconds", "largest.query_s", 5),
        ("a group-by query over them: MB", "largest.query_mb", 1000),
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
