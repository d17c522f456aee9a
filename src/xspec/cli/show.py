"""`python -m xspec show ID|overrides`: the canonical spec."""

import json
import sys

from xspec.cli.parser import VerbParser
from xspec.cli.stored_or_composed import spec_named


def main(arguments: list[str]) -> int:
    parser = VerbParser(
        prog="python -m xspec show", description="The canonical spec of an id or of overrides."
    )
    parser.add_argument("what", nargs="*", metavar="ID|OVERRIDE")
    parser.add_argument("--store", default="mlruns", metavar="PATH")
    options = parser.parse_args(arguments)
    spec = spec_named(options.what, options.store)
    print(f"{spec.id}  (condition {spec.condition_id})", file=sys.stderr)
    print(json.dumps(json.loads(spec.canonical()), indent=2, ensure_ascii=False))
    return 0
