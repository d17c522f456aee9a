"""`python -m xspec project`: bring Parquet and MLflow up to date with the journals."""

from xspec.benchmarks.protected import INCLUDE
from xspec.cli.parser import VerbParser
from xspec.counted import counted
from xspec.records.executions import executions_of
from xspec.report.sentences import nothing_stored
from xspec.spec.store import Store
from xspec.tracking.project import project_all


def main(arguments: list[str]) -> int:
    parser = VerbParser(
        prog="python -m xspec project",
        description="Brings Parquet and MLflow up to date with the journals. Nothing is logged twice.",
    )
    parser.add_argument("--store", default="mlruns", metavar="PATH")
    parser.add_argument(
        INCLUDE, action="store_true", help="give MLflow's artifacts also the texts that a licence protects"
    )
    options = parser.parse_args(arguments)
    store = Store(options.store, create=False)
    there = len(executions_of(store))
    if not there:
        print(nothing_stored(options.store))
        return 0
    done = project_all(store, include_protected=options.include_protected)
    print(
        f"{counted(there, 'execution')} in {options.store}; MLflow lacked {done} of them"
        if done
        else "nothing was pending"
    )
    return 0
