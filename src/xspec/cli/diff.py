"""`python -m xspec diff A B`: where two specs differ, and whether in factors alone."""

import shlex

from xspec.cli.parser import VerbParser
from xspec.cli.stored_or_composed import spec_named
from xspec.spec.diff import changed_tasks, comparable, diff_specs
from xspec.spec.models import ExperimentSpec
from xspec.spec.store import Store


def main(arguments: list[str]) -> int:
    parser = VerbParser(
        prog="python -m xspec diff",
        description="The fields in which two specs differ, and whether they are factors.",
    )
    parser.add_argument("a", metavar="A", help="an id, or overrides in quotes: '+arm=guided k=3'")
    parser.add_argument("b", metavar="B")
    parser.add_argument("--store", default="mlruns", metavar="PATH")
    options = parser.parse_args(arguments)
    a, b = (spec_named(shlex.split(text), options.store) for text in (options.a, options.b))
    print(f"A {a.id}\nB {b.id}")
    differences = diff_specs(a, b)
    for field in differences:
        print(f"{'factor' if field.factor else 'DIFFERS'}  {field}")
        if field.field == "benchmark.manifest":
            print(f"         {_manifests(a, b, Store(options.store, create=False))}")
    if not differences:
        print("the same spec")
    elif comparable(a, b):
        print("not arms of one comparison: they differ in more than factors, or share no member")
    else:
        print("arms of one comparison: they differ in factors alone")
    return 0


def _manifests(a: ExperimentSpec, b: ExperimentSpec, store: Store) -> str:
    """Which tasks are not the same in both, by id: their texts, tools, data or solutions changed."""
    tasks, parts = changed_tasks(*(store.json_blob(spec.benchmark.manifest) for spec in (a, b)))
    named = [*parts, f"tasks: {', '.join(tasks)}"] if tasks else parts
    return f"other {', '.join(named)}"
