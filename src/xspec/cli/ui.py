"""`python -m xspec ui`: the MLflow UI over what is stored."""

import signal

from xspec.cli.parser import VerbParser
from xspec.errors import UserError
from xspec.records.executions import executions_of
from xspec.report.sentences import nothing_stored
from xspec.spec.store import Store
from xspec.tracking.project import project_all, run_tracking_process
from xspec.tracking.ui import running_ui


def main(arguments: list[str]) -> int:
    parser = VerbParser(
        prog="python -m xspec ui", description="Serves the MLflow UI on loopback until it is interrupted."
    )
    parser.add_argument("--store", default="mlruns", metavar="PATH")
    parser.add_argument(
        "--port", type=int, metavar="P", help="default 5000, or a free one; 0 takes a free one"
    )
    options = parser.parse_args(arguments)
    if options.port is not None and not 0 <= options.port < 65_536:
        raise UserError(f"--port {options.port}: give a number from 0 to 65535")
    store = Store(options.store, create=False)
    if not executions_of(store):
        print(nothing_stored(options.store))
        return 0
    for sign in (signal.SIGTERM, signal.SIGINT):  # a shell starts background jobs with SIGINT ignored
        signal.signal(sign, signal.default_int_handler)
    if not project_all(store):
        run_tracking_process(store.path)  # the experiment's look may be of an older version
    with running_ui(store.path, options.port) as (address, process):
        print(f"{address}\nend it with Ctrl-C", flush=True)
        try:
            return process.wait() and 3
        except KeyboardInterrupt:
            return 0
