"""`python -m xspec export TARGET …`: what is stored, in a form for elsewhere. One file a target in xspec.export."""

import argparse
from pathlib import Path

from xspec.benchmarks.protected import INCLUDE, protection_of
from xspec.cli.parser import VerbParser
from xspec.counted import counted
from xspec.errors import DiskFailed, StoreError, UserError
from xspec.export.appworld_run import export_appworld_run
from xspec.records.executions import execution_named
from xspec.spec.bundle import bundle
from xspec.spec.store import Store, write_whole


def main(arguments: list[str]) -> int:
    parser = VerbParser(prog="python -m xspec export", description="What is stored, in a form for elsewhere.")
    targets = parser.add_subparsers(dest="target", required=True, metavar="TARGET")
    spec = targets.add_parser("spec", help="a spec with all it stands on, in one file for `reproduce FILE`")
    spec.add_argument("id", metavar="ID", help="a spec id, or its beginning")
    spec.add_argument("-o", "--output", required=True, metavar="FILE")
    spec.set_defaults(export=_spec)
    run = targets.add_parser("appworld-run", help="an execution's runs in AppWorld's own folder layout")
    run.add_argument("id", metavar="ID", help="an execution id, or its beginning")
    run.add_argument("-o", "--output", required=True, metavar="FOLDER", help="a folder that is not there yet")
    run.set_defaults(export=_appworld_run)
    for target in (spec, run):
        target.add_argument("--store", default="mlruns", metavar="PATH")
        target.add_argument(INCLUDE, action="store_true", help="also where a licence protects the texts")
    options = parser.parse_args(arguments)
    code: int = options.export(Store(options.store, create=False), options)
    return code


def _spec(store: Store, options: argparse.Namespace) -> int:
    spec_id = store.find_spec_id(options.id)
    _permit(store.spec(spec_id).benchmark.kind, options, "the manifest in it has the texts of the tasks")
    path = Path(options.output)
    data = bundle(store, spec_id)
    try:
        write_whole(path.absolute(), data)
    except DiskFailed as error:
        raise StoreError(f"{path} cannot be written: {error.reason}") from None
    print(f"{spec_id} with its prompts, rules and manifest is in {path}; run it anywhere: reproduce {path}")
    return 0


def _appworld_run(store: Store, options: argparse.Namespace) -> int:
    folder = execution_named(store, options.id)
    kind = store.spec(folder.info.spec_id).benchmark.kind
    _permit(kind, options, "it is the trials' own databases and conversations")
    path = Path(options.output)
    done = export_appworld_run(store, folder, path.absolute())
    print(
        f"{path} has {counted(done.trials, 'trial')} in {counted(done.runs, 'run')}, as AppWorld keeps them"
    )
    if done.left_out:
        print(
            f"left out: {counted(done.left_out, 'trial')}, invalid, missing, or with a world that kept nothing"
        )
    print(f"Do not make it public as it is: {protection_of(kind)}")
    return 0


def _permit(kind: str, options: argparse.Namespace, what: str) -> None:
    """Raises UserError for a protected benchmark unless the user said otherwise: then nothing is written."""
    reason = protection_of(kind)
    if reason is not None and not options.include_protected:
        raise UserError(
            f"nothing was written: {what}, and {reason}; to have it here all the same, add {INCLUDE}"
        )
