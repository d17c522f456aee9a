"""What projecting costs: python bench/projection.py STORE

Copies the store's journals (not its projections) and projects them from nothing: CPU seconds of the Parquet part, of
the MLflow process, and of a second projection that finds nothing to do. The limit is 10 s CPU for 1,840 trials.
"""

import argparse
import resource
import shutil
import tempfile
import time
from pathlib import Path

from xspec.records.executions import executions_of
from xspec.spec.store import Store
from xspec.tracking.project import project_all, project_tables_of

LIMIT_S_PER_TRIAL = 10 / 1840


def children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("store", type=Path)
    source = parser.parse_args().store
    with tempfile.TemporaryDirectory(prefix="xspec-bench-") as folder:
        copied = Path(folder) / "store"
        shutil.copytree(source, copied, ignore=shutil.ignore_patterns("parquet", "mlflow.db*", "artifacts"))
        store = Store(copied, create=False)
        begun = time.process_time()
        project_tables_of(store)
        tables = time.process_time() - begun
        project_all(store)
        mlflow = children_s()
        begun = time.process_time()
        project_all(store)
        again = time.process_time() - begun
        trials = sum(len(execution.progress().trials) for execution in executions_of(store))
    total = tables + mlflow
    print(f"{trials} trials: Parquet {tables:.2f} s, MLflow {mlflow:.2f} s, again {again:.3f} s CPU")
    if trials < 1840:
        return 0  # MLflow's import alone is three seconds, however few the trials
    return int(total > LIMIT_S_PER_TRIAL * trials)


if __name__ == "__main__":
    raise SystemExit(main())
