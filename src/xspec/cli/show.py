"""`python -m xspec show ID|overrides`: the canonical spec."""

import json
import sys
from collections.abc import Sequence

from xspec.cli.parser import VerbParser
from xspec.cli.stored_or_composed import spec_named
from xspec.counted import counted
from xspec.errors import UserError
from xspec.guides.scope import guide_scope
from xspec.spec.models import ExperimentSpec
from xspec.spec.store import Store


def main(arguments: list[str]) -> int:
    parser = VerbParser(
        prog="python -m xspec show", description="The canonical spec of an id or of overrides."
    )
    parser.add_argument("what", nargs="*", metavar="ID|OVERRIDE")
    parser.add_argument(
        "--task", metavar="TASK", help="instead: the messages that a trial of this task begins with"
    )
    parser.add_argument("--store", default="mlruns", metavar="PATH")
    options = parser.parse_args(arguments)
    spec = spec_named(options.what, options.store)
    print(f"{spec.id}  (condition {spec.condition_id})", file=sys.stderr)
    store = Store(_store_path(options.what, options.store), create=False)
    if options.task is not None:
        return _messages(store, spec, options.task)
    if spec.guide.kind == "rules":
        print(f"guide: {_guide(store, spec)}", file=sys.stderr)
    print(json.dumps(json.loads(spec.canonical()), indent=2, ensure_ascii=False))
    return 0


def _messages(store: Store, spec: ExperimentSpec, task: str) -> int:
    """System message and instruction as they are sent, guide and all."""
    if task not in spec.benchmark.tasks:
        raise UserError(f"{task!r} is none of the {counted(len(spec.benchmark.tasks), 'task')} of {spec.id}")
    from xspec.experiment.arm_execution import trial_inputs  # with it comes the route: a second of imports

    given = trial_inputs(store, spec)[task]
    print(f"[system]\n{given.system}\n\n[user]\n{given.instruction}")
    return 0


def _guide(store: Store, spec: ExperimentSpec) -> str:
    """`6 rules, unsourced 92 of 92 tasks`."""
    assert spec.guide.kind == "rules"
    clusters = {row["id"]: row["cluster"] for row in store.json_blob(spec.benchmark.manifest)["tasks"]}
    scope = guide_scope(store.json_blob(spec.guide.digest), spec.benchmark.tasks, clusters)
    return f"{counted(scope.rules, 'rule')}, {scope.text()} (--task TASK shows what it becomes)"


def _store_path(words: Sequence[str], default: str) -> str:
    named = [word.partition("=")[2] for word in words if word.startswith("store=")]
    return named[-1] if named else default
