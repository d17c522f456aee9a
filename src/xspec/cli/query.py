"""`python -m xspec query "SQL"`: DuckDB over what is stored."""

import csv
import json
import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from decimal import Decimal
from typing import Any, TextIO

import duckdb

from xspec.cli.parser import VerbParser
from xspec.cli.projection import bring_up_to_date
from xspec.errors import UserError
from xspec.report.views import VIEWS, open_views
from xspec.spec.store import Store
from xspec.tracking.project import project_tables_of

_AT_ONCE = 10_000
_TABLE_ROWS = 1_000
_CELL = 80

Rows = Iterator[Sequence[Any]]


def main(arguments: list[str]) -> int:
    parser = VerbParser(
        prog="python -m xspec query",
        description="One SELECT over the views "
        + ", ".join(VIEWS)
        + ". docs/store.md has their columns, docs/queries.md useful queries.",
    )
    parser.add_argument("sql", metavar="SQL", help='for instance "SELECT arm, gap_pp FROM executions"')
    parser.add_argument("--format", choices=("table", "json", "csv"), default="table")
    parser.add_argument("--store", default="mlruns", metavar="PATH")
    options = parser.parse_args(arguments)
    store = Store(options.store, create=False)
    project_tables_of(store)
    names, rows = run_query(store, options.sql)
    {"table": write_table, "json": write_json, "csv": write_csv}[options.format](names, rows, sys.stdout)
    sys.stdout.flush()
    bring_up_to_date(store)
    return 0


def run_query(store: Store, sql: str) -> tuple[list[str], Rows]:
    """Column names and rows of one SELECT. Raises UserError, in one line, for anything else."""
    try:
        sql.encode()
    except UnicodeEncodeError:
        raise UserError("the query is not UTF-8 text; set a UTF-8 locale") from None
    with _failures_in_one_line():
        connection = open_views(store)
        statements = connection.extract_statements(sql)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise UserError(
                "a query is one SELECT (or DESCRIBE, SUMMARIZE, WITH … SELECT); nothing can be written"
            )
        connection.execute(statements[0])
    names = [str(column[0]) for column in connection.description or ()]
    return names, _rows(connection)


def write_table(names: list[str], rows: Rows, out: TextIO) -> None:
    """Aligned columns, numbers to the right; at most a thousand rows."""
    shown: list[list[str]] = []
    numeric = [True] * len(names)
    more = False
    for row in rows:
        if len(shown) == _TABLE_ROWS:
            more = True
            break
        numeric = [n and (v is None or _is_number(v)) for n, v in zip(numeric, row, strict=True)]
        shown.append([_cell(value) for value in row])
    widths = [max([len(name), *(len(row[i]) for row in shown)]) for i, name in enumerate(names)]

    def line(cells: Sequence[str]) -> str:
        padded = (
            c.rjust(w) if right else c.ljust(w) for c, w, right in zip(cells, widths, numeric, strict=True)
        )
        return "  ".join(padded).rstrip()

    print(line(names), file=out)
    print("  ".join("-" * width for width in widths), file=out)
    for cells in shown:
        print(line(cells), file=out)
    if more:
        print(f"xspec: the first {_TABLE_ROWS} rows; --format csv or json writes all", file=sys.stderr)


def write_json(names: list[str], rows: Rows, out: TextIO) -> None:
    """A list with an object a row. What JSON has no number for (NaN, infinity) is null; times are UTC text."""
    out.write("[")
    for i, row in enumerate(rows):
        item = {name: _plain(value) for name, value in zip(names, row, strict=True)}
        out.write(("," if i else "") + "\n " + json.dumps(item, ensure_ascii=False, allow_nan=False))
    out.write("\n]\n")


def write_csv(names: list[str], rows: Rows, out: TextIO) -> None:
    """Comma-separated values with a header; null is empty."""
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    for row in rows:
        writer.writerow([_flat(_plain(value)) for value in row])


def _rows(connection: duckdb.DuckDBPyConnection) -> Rows:
    while True:
        with _failures_in_one_line():
            batch = connection.fetchmany(_AT_ONCE)
        if not batch:
            return
        yield from batch


@contextmanager
def _failures_in_one_line() -> Iterator[None]:
    try:
        yield
    except duckdb.Error as error:
        lines = str(error).split("\n\n")[0].split()
        raise UserError(f"the query failed: {' '.join(lines)}; views are {', '.join(VIEWS)}") from None


def _plain(value: Any) -> Any:
    """JSON data of a value."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def _flat(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _cell(value: Any) -> str:
    """One line of text: control characters of a model's text must not reach the terminal."""
    plain = _plain(value)
    if plain is None:
        return ""
    if isinstance(plain, float):
        return f"{plain:.2f}" if abs(plain) >= 0.1 or plain == 0 else f"{plain:.3g}"
    text = " ".join(str(_flat(plain)).split())
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return text if len(text) <= _CELL else text[: _CELL - 1] + "…"
