"""What projecting costs: the CPU of the Parquet part, of the MLflow process, and of finding nothing to do."""

import resource
import shutil
import tempfile
import time
from pathlib import Path

from xspec.spec.store import Store
from xspec.tracking.project import project_all, project_tables_of


def project_from_nothing(source: Path) -> tuple[float, float, float]:
    """CPU seconds of Parquet, MLflow, and a second projection, over a copy of the store's journals."""
    with tempfile.TemporaryDirectory(prefix="xspec-bench-") as folder:
        copied = Path(folder) / "store"
        shutil.copytree(source, copied, ignore=shutil.ignore_patterns("parquet", "mlflow.db*", "artifacts"))
        store = Store(copied, create=False)
        began = time.process_time()
        project_tables_of(store)
        tables = time.process_time() - began
        before = _children_s()
        project_all(store)
        mlflow = _children_s() - before
        began = time.process_time()
        project_all(store)
        return tables, mlflow, time.process_time() - began


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
