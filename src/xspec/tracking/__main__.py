"""`python -m xspec.tracking STORE [--include-protected]`: the MLflow part of the projection, in its own process."""

import sys
from functools import partial

from xspec.benchmarks.protected import INCLUDE, protection_of
from xspec.errors import XspecError
from xspec.records.executions import executions_of
from xspec.records.parquet import journal_sizes
from xspec.records.parquet_lock import held
from xspec.spec.store import Store
from xspec.tracking.project import mark_of, pending
from xspec.tracking.summary import project_tables
from xspec.tracking.view_state import experiment_tags


def main(path: str, *words: str) -> int:
    """Projects what MLflow lacks, one process at a time a store."""
    store = Store(path, create=False)
    try:
        with held(store.path / ".tracking.lock"):
            bring_up_to_date(store, include_protected=INCLUDE in words)
    except XspecError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


def bring_up_to_date(store: Store, *, include_protected: bool = False) -> None:
    """Opens the database even if nothing is pending: a moved store, or one being shown, needs it right."""
    from xspec.report.page import comparison_page
    from xspec.tracking.database import describe_experiment, open_tracking
    from xspec.tracking.mlflow_runs import project_execution

    ks = {store.spec(spec_id).k for spec_id in {folder.info.spec_id for folder in executions_of(store)}}
    with open_tracking(store.path) as tracking:
        describe_experiment(tracking, experiment_tags(ks))
        for folder in pending(store, include_protected=include_protected):
            protected = protection_of(store.spec(folder.info.spec_id).benchmark.kind) is not None
            mark = mark_of(journal_sizes(folder), with_protected=protected and include_protected)
            project_tables(store, folder)
            page = partial(comparison_page, include_protected=include_protected)
            project_execution(tracking, store, folder, mark, page, include_protected=include_protected)


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
