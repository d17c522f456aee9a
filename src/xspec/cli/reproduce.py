"""`python -m xspec reproduce ID|FILE`: execute a stored or exported spec again, from its bytes and blobs alone."""

import argparse
import sys
from pathlib import Path

from xspec.cli.outcome import tell_end
from xspec.cli.parser import VerbParser
from xspec.errors import UserError
from xspec.experiment.compile import Compiled
from xspec.experiment.execute import execute
from xspec.experiment.lock import differences
from xspec.records.executions import executions_of
from xspec.spec.bundle import unbundle
from xspec.spec.members import Member
from xspec.spec.models import ExperimentSpec
from xspec.spec.store import Store
from xspec.spec.user_file import read_user_file

MAX_BUNDLE_BYTES = 256 * 2**20


def main(arguments: list[str]) -> int:
    parser = VerbParser(
        prog="python -m xspec reproduce",
        usage="python -m xspec reproduce ID|FILE [option …]",
        description="Begins a new execution of a stored or exported spec; conf/ is not read.",
    )
    parser.add_argument(
        "what", metavar="ID|FILE", help="a spec id (or its beginning), or a file made by `export spec`"
    )
    parser.add_argument("overrides", nargs="*", help=argparse.SUPPRESS)
    parser.add_argument(
        "--resume", action="store_true", help="go on with its newest unfinished execution instead"
    )
    parser.add_argument(
        "--accept-lock-change", action="store_true", help="with --resume: see `python -m xspec --help`"
    )
    parser.add_argument("--workers", type=int, default=None, metavar="N", help="trials at once")
    parser.add_argument("--store", default="mlruns", metavar="PATH")
    options = parser.parse_args(arguments)
    if options.overrides:
        raise UserError(
            f"{options.what} is executed as it is stored: it takes no overrides ({' '.join(options.overrides)})"
        )
    if options.workers is not None and options.workers < 1:
        raise UserError(f"--workers {options.workers}: give the number of trials at once, 1 or more")
    store = Store(options.store)
    spec = _spec(store, options.what)
    elsewhere = ("--store", options.store) if options.store != "mlruns" else ()
    compiled = Compiled(
        spec,
        arm=_label(store, spec.id),
        workers=options.workers or _workers(spec.route.members[0]),
        max_invalid_share=0.05,
        command=("reproduce", spec.id, "--resume", *elsewhere),
        accept_lock_change=options.accept_lock_change,
    )
    code = tell_end(execute([compiled], store, anew=not options.resume), store)
    for line in _lock_differences(store, spec.id):
        print(f"xspec: {line}", file=sys.stderr)
    return code


def _spec(store: Store, what: str) -> ExperimentSpec:
    path = Path(what)
    if Store.looks_like_id(what) or not path.exists():
        return store.spec(store.find_spec_id(what))
    data = read_user_file(what, MAX_BUNDLE_BYTES, "bundle")
    return unbundle(store, data, what)


def _workers(member: Member) -> int:
    """Trials at once where the user names no number: what the member was made to bear."""
    if member.kind == "rehearsal":
        return 16
    return member.n_parallel if member.kind == "local" else 4


def _label(store: Store, spec_id: str) -> str | None:
    """The arm name that earlier executions of the spec went by."""
    names = [folder.info.arm for folder in executions_of(store, spec_id) if folder.info.arm]
    return names[-1] if names else None


def _lock_differences(store: Store, spec_id: str) -> list[str]:
    """How the environment of the newest execution differs from that of the first."""
    folders = [folder for folder in executions_of(store, spec_id) if folder.stints()]
    if len(folders) < 2:
        return []
    first, newest = folders[0], folders[-1]
    then, now = first.locks()[0], newest.locks()[0]
    if not then or not now:
        return [f"the lock of {(newest if then else first).info.execution_id} is gone: nothing to compare"]
    changed = differences(then, now)
    if not changed:
        return [f"its environment is that of {first.info.execution_id}: versions, data and keys are the same"]
    return [f"differs from {first.info.execution_id} in {line}" for line in changed]
