"""`python -m xspec report`: what the store holds, and what can be concluded from it."""

import sys
from pathlib import Path
from typing import Any

from xspec.benchmarks.protected import INCLUDE
from xspec.cli.parser import VerbParser
from xspec.cli.projection import bring_up_to_date
from xspec.cli.say import say
from xspec.errors import UserError
from xspec.records.executions import executions_of
from xspec.report.build import build_report
from xspec.report.json_form import report_json
from xspec.report.load import load_gateways, load_records
from xspec.report.model import Report
from xspec.report.output import Output
from xspec.report.protection import without_protected_texts
from xspec.report.sentences import nothing_stored
from xspec.report.table import print_report, report_text
from xspec.report.write import write_text
from xspec.spec.store import Store

_FORMATS = ("table", "json", "md", "html")


def main(arguments: list[str]) -> int:
    parser = VerbParser(
        prog="python -m xspec report",
        description="The consistency gap of each stored arm, and what can be concluded between arms.",
    )
    parser.add_argument("--store", default="mlruns", metavar="PATH")
    parser.add_argument("--format", choices=_FORMATS, help="default: by the end of FILE's name, else table")
    parser.add_argument("-o", "--output", metavar="FILE", help="write there instead of to standard output")
    parser.add_argument(
        "--spec", action="append", metavar="ID", help="only this spec (may be given several times)"
    )
    parser.add_argument("--benchmark", metavar="NAME", help="only specs of this benchmark")
    parser.add_argument("--last", type=int, metavar="N", help="only the newest N executions")
    parser.add_argument(
        "--allow-differences",
        action="store_true",
        help="compare specs with the same tasks and k whatever else they differ in; the report lists it",
    )
    parser.add_argument(
        "--margin", type=float, metavar="D", help='points within which "no change" may be claimed'
    )
    parser.add_argument(
        INCLUDE,
        action="store_true",
        help="show the texts of tasks and trials also where a licence protects them",
    )
    options = parser.parse_args(arguments)
    if options.last is not None and options.last < 1:
        raise UserError(f"--last {options.last}: give the number of executions, 1 or more")
    if options.margin is not None and not 0 < options.margin < 100:
        raise UserError(f"--margin {options.margin:g}: give points between 0 and 100")
    kind = options.format or _format_of(options.output)
    store = Store(options.store, create=False)
    ids = [store.find_spec_id(text) for text in options.spec] if options.spec else None
    which: dict[str, Any] = {"spec_ids": ids, "benchmark": options.benchmark, "last": options.last}
    report = build_report(
        load_records(store, **which),
        allow_differences=options.allow_differences,
        margin_pp=options.margin,
        gateways=load_gateways(store, **which),
    )
    if report.empty:
        _refuse_empty_choice(store, options.spec, options.benchmark)
    if not options.include_protected:
        report = without_protected_texts(report)
    if options.output is not None:
        write_text(Path(options.output), _text(report, kind, options.store))
        say(f"wrote {options.output}")
    elif kind == "table" and not report.empty:
        print_report(report, Output())
    else:
        sys.stdout.write(_text(report, kind, options.store))
    sys.stdout.flush()
    bring_up_to_date(store)
    return 0


def _refuse_empty_choice(store: Store, specs: list[str] | None, benchmark: str | None) -> None:
    """A store with executions is not "nothing stored" because none is what was asked for."""
    stored = sorted({store.spec(folder.info.spec_id).benchmark.kind for folder in executions_of(store)})
    if stored and (specs or benchmark):
        chosen = [f"--spec {spec}" for spec in specs or ()] + (
            [f"--benchmark {benchmark}"] if benchmark else []
        )
        raise UserError(
            f"{' '.join(chosen)}: no such execution in {store.path}, which has some of {', '.join(stored)}"
        )


def _format_of(output: str | None) -> str:
    ends = {".json": "json", ".md": "md", ".html": "html", ".htm": "html"}
    return ends.get(Path(output).suffix.lower(), "table") if output else "table"


def _text(report: Report, kind: str, store: str) -> str:
    if kind == "json":
        return report_json(report)
    if kind == "html":
        from xspec.report.html import report_html

        return report_html(report)
    if kind == "md":
        from xspec.report.markdown import report_markdown

        return report_markdown(report)
    return report_text(report, 120) if not report.empty else nothing_stored(store) + "\n"
