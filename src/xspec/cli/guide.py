"""`python -m xspec guide`: generate a guide, look at it, check it, compare two."""

import asyncio
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from xspec.cli.generating import add_options, execution_named, generate
from xspec.cli.parser import VerbParser
from xspec.cli.say import say
from xspec.cli.stored_or_composed import spec_named
from xspec.counted import counted
from xspec.errors import StoreError, UserError
from xspec.experiment.known_answers import known_answers
from xspec.experiment.source_tasks import at_home
from xspec.guides.answers import Answers
from xspec.guides.guide import Guide
from xspec.guides.lint import lint
from xspec.guides.read import read_guide
from xspec.guides.rule import Rule, lines_of
from xspec.guides.rules import rules_for
from xspec.guides.scope import guide_scope
from xspec.guides.selection import Selection, assign_rules
from xspec.records.executions import ExecutionFolder, executions_of
from xspec.spec.config import BenchmarkConfig
from xspec.spec.models import ExperimentSpec
from xspec.spec.store import Store


def main(arguments: list[str]) -> int:
    parser = VerbParser(
        prog="python -m xspec guide", description="Guides: generate one, look at it, check it, compare two."
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    make = verbs.add_parser("generate", help="from a stored execution, by ALTK-Evolve (env create altk)")
    make.add_argument("--from", dest="source", required=True, metavar="ID", help="an execution, or a spec")
    make.add_argument("-o", "--output", required=True, metavar="FILE", help="the guide file to write")
    add_options(make)
    show = verbs.add_parser("show", help="its rules, where they are from, how it was generated")
    show.add_argument("what", metavar="FILE|ID", help="a guide's file, or the id of a spec that has one")
    check = verbs.add_parser(
        "lint", help="empty, contradictory or oversized rules; answers that leak into them"
    )
    check.add_argument("file", metavar="FILE")
    check.add_argument("spec", nargs="*", metavar="ID|OVERRIDE", help="the spec whose tasks it is for")
    check.add_argument("--selection", choices=get_args(Selection), default="all", help="default: all")
    check.add_argument("--n", type=int, default=None, metavar="N", help="with top-n: rules a task")
    compare = verbs.add_parser("diff", help="the rules that only one of two guides has")
    compare.add_argument("a", metavar="A", help="a guide's file, or the id of a spec that has one")
    compare.add_argument("b", metavar="B")
    for verb in (make, show, check, compare):
        verb.add_argument("--store", default="mlruns", metavar="PATH")
    options = parser.parse_args(arguments)
    if options.verb == "generate":
        store = Store(options.store)
        again = shlex.join(["python", "-m", "xspec", "guide", *arguments])
        return generate(store, execution_named(store, options.source), options, Path(options.output), again)
    if options.verb == "show":
        return _show(options.what, options.store)
    if options.verb == "diff":
        return _diff(options.a, options.b, options.store)
    return _lint(options.file, options.spec, options.store, options.selection, options.n)


def _show(what: str, store_path: str) -> int:
    if not Store.looks_like_id(what):
        guide = read_guide(what)
        print(f"{what}: {guide.form}, {counted(len(guide.rules), 'rule')}")
        for key, value in (guide.provenance or {}).items():
            if key == "uncertainty" and not value:
                continue
            if key != "uncertainty":
                print(f"  {key}: {', '.join(map(str, value)) if isinstance(value, list | tuple) else value}")
            else:
                marked = sum(entry["marked"] for entry in value)
                print(f"  uncertainty: {counted(len(value), 'step')} measured, {marked} of them marked")
        for i, rule in enumerate(guide.rules):
            _print_rule(i, rule.plain(), rule.source_tasks)
        return 0
    store, spec, stored = _stored(what, store_path)
    clusters = {row["id"]: row["cluster"] for row in store.json_blob(spec.benchmark.manifest)["tasks"]}
    scope = guide_scope(stored, spec.benchmark.tasks, clusters)
    print(f"{spec.id}: {counted(len(stored['rules']), 'rule')}; {scope.text()}")
    counts = [len(rules_for(stored, task)) for task in spec.benchmark.tasks]
    print(f"  rules a task: {min(counts)} to {max(counts)}")
    for i, rule in enumerate(stored["rules"]):
        _print_rule(i, rule, rule.get("source_tasks", ()))
    return 0


def _print_rule(number: int, rule: Mapping[str, Any], sources: Sequence[str]) -> None:
    print(f"\n[{number}] {'from ' + ', '.join(sources) if sources else 'names no source'}")
    print("\n".join(lines_of(rule)))


def _lint(file: str, words: Sequence[str], store_path: str, selection: Selection, n: int | None) -> int:
    guide = read_guide(file)
    spec = spec_named(words, store_path) if words else _own_spec(guide, store_path)
    rules: Sequence[Rule] = guide.rules
    given: Mapping[str, Sequence[int]] = {"every task": range(len(rules))}
    answers: Mapping[str, Answers] = {}
    unknown: Mapping[int, Sequence[str]] = {}
    if spec is None:
        say("no task's answer was looked for: name a spec whose tasks it is for, like xs-… or benchmark=NAME")
    else:
        store = Store(store_path, create=False)
        manifest = store.json_blob(spec.benchmark.manifest)
        tasks = manifest["tasks"]
        rules, unknown = asyncio.run(at_home(guide, _benchmark(spec), manifest, store))
        assign = assign_rules(rules, tasks, selection, n)
        given = {row["id"]: range(len(rules)) for row in tasks} if assign is None else assign
        answers = asyncio.run(known_answers(spec, store, _own_execution(guide, store)))
    findings = lint(rules, given, answers, unknown)
    for finding in findings:
        print(f"{finding.severity}: {finding.kind}: {finding.text}")
    errors = sum(finding.severity == "error" for finding in findings)
    warnings = len(findings) - errors
    print(f"{counted(len(rules), 'rule')}, {counted(errors, 'error')}, {counted(warnings, 'warning')}")
    return UserError.exit_code if errors else 0


def _benchmark(spec: ExperimentSpec) -> BenchmarkConfig:
    """The configuration of the spec's benchmark, whatever tasks it chose."""
    own = spec.benchmark
    return BenchmarkConfig(kind=own.kind, version=own.version, split=own.split, settings=own.settings)


def _own_spec(guide: Guide, store_path: str) -> ExperimentSpec | None:
    """The spec it was generated from, if it is in the store."""
    spec_id = (guide.provenance or {}).get("spec_id")
    if spec_id is None or not Path(store_path).is_dir():
        return None
    try:
        return Store(store_path, create=False).spec(spec_id)
    except StoreError:
        return None


def _own_execution(guide: Guide, store: Store) -> ExecutionFolder | None:
    """The execution it was generated from, if it is in the store."""
    wanted = (guide.provenance or {}).get("execution_id")
    return next((folder for folder in executions_of(store) if folder.path.name == wanted), None)


def _diff(a: str, b: str, store_path: str) -> int:
    one, other = _plain_rules(a, store_path), _plain_rules(b, store_path)
    for mark, rules, against in (("-", one, other), ("+", other, one)):
        for rule in rules:
            if rule not in against:
                print("\n".join(f"{mark} {line}" for line in lines_of(rule)))
                if any({**rule, "source_tasks": r.get("source_tasks")} == r for r in against):
                    print(f"{mark}   (the other has it from other source tasks)")
    shared = sum(rule in other for rule in one)
    print(
        f"{counted(shared, 'rule')} in common, {len(one) - shared} only in A, {len(other) - shared} only in B"
    )
    return 0


def _plain_rules(what: str, store_path: str) -> list[dict[str, Any]]:
    if Store.looks_like_id(what):
        return list(_stored(what, store_path)[2]["rules"])
    return [rule.cleaned().plain() for rule in read_guide(what).rules]


def _stored(what: str, store_path: str) -> tuple[Store, ExperimentSpec, dict[str, Any]]:
    store = Store(store_path, create=False)
    spec = store.spec(store.find_spec_id(what))
    if spec.guide.kind == "none":
        raise UserError(f"{spec.id} has no guide")
    guide: dict[str, Any] = store.json_blob(spec.guide.digest)
    return store, spec, guide
