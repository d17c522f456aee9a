"""`python -m xspec report`: what the store holds."""

import sys

from rich.console import Console

from xspec.cli.parser import VerbParser
from xspec.cli.projection import bring_up_to_date
from xspec.errors import UserError
from xspec.report.build import build_report
from xspec.report.json_form import report_json
from xspec.report.load import load_records
from xspec.report.sentences import nothing_stored
from xspec.report.table import print_report
from xspec.spec.store import Store


def main(arguments: list[str]) -> int:
    parser = VerbParser(prog="python -m xspec report", description="The consistency gap of each stored arm.")
    parser.add_argument("--store", default="mlruns", metavar="PATH")
    parser.add_argument("--format", choices=("table", "json"), default="table")
    parser.add_argument(
        "--spec", action="append", metavar="ID", help="only this spec (may be given several times)"
    )
    parser.add_argument("--benchmark", metavar="NAME", help="only specs of this benchmark")
    parser.add_argument("--last", type=int, metavar="N", help="only the newest N executions")
    options = parser.parse_args(arguments)
    if options.last is not None and options.last < 1:
        raise UserError(f"--last {options.last}: give the number of executions, 1 or more")
    store = Store(options.store, create=False)
    ids = [store.find_spec_id(text) for text in options.spec] if options.spec else None
    report = build_report(load_records(store, spec_ids=ids, benchmark=options.benchmark, last=options.last))
    if options.format == "json":
        sys.stdout.write(report_json(report))
    elif not report.groups:
        print(nothing_stored(options.store))
    else:
        print_report(report, Console())
    sys.stdout.flush()
    bring_up_to_date(store)
    return 0
