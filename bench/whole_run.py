"""The default sweep as a user runs it, 4 arms x 92 tasks x 5 runs, and then its projection from nothing.

    python -m bench.whole_run

Wall seconds from the command to its end, seconds to the first model call (a second command, all warm), peak PSS of
all its processes together in megabytes, CPU seconds of projecting 1,840 trials into Parquet and MLflow. Prints JSON.
"""

import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from bench.projection import project_from_nothing
from xspec.records.executions import executions_of
from xspec.spec.store import Store

ARMS = "+arm=baseline,guided,floating,guided_floating"


def watched(store: Path, *overrides: str) -> tuple[float, float]:
    """Wall seconds and peak PSS in megabytes of one sweep."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "xspec", ARMS, *overrides, f"store={store}", "-m"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    root, peak = psutil.Process(process.pid), 0
    while process.poll() is None:
        peak = max(peak, _pss(root))
        time.sleep(0.5)
    return time.perf_counter() - began, peak / 2**20


def _pss(root: psutil.Process) -> int:
    total = 0
    try:
        for process in [root, *root.children(recursive=True)]:
            total += int(process.memory_full_info().pss)
    except psutil.Error:
        return 0
    return total


def first_call_s(store: Path) -> float:
    """Seconds from a warm command to its first model call."""
    known = {folder.path.name for folder in executions_of(Store(store))}
    began = time.time()
    watched(store, "k=1", "benchmark.limit=2")
    new = [folder for folder in executions_of(Store(store)) if folder.path.name not in known]
    return float(min(next(iter(folder.rows("attempt_started")))["at"] for folder in new)) - began


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="xspec-bench-") as folder:
        store = Path(folder) / "store"
        wall, peak = watched(store)
        first = first_call_s(store)
        shutil.rmtree(store / "artifacts")
        parquet, mlflow, again = project_from_nothing(store)
    print(
        json.dumps(
            {
                "wall_s": wall,
                "first_call_s": first,
                "peak_pss_mb": peak,
                "parquet_cpu_s": parquet,
                "mlflow_cpu_s": mlflow,
                "projection_cpu_s": parquet + mlflow,
                "projection_again_cpu_s": again,
            },
            indent=2,
        )
    )


if __name__ == "__main__":
    main()
