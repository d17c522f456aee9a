"""`python -m xspec export TARGET …`: what is stored, in a form for elsewhere. One file a target in xspec.export."""

from pathlib import Path

from xspec.cli.parser import VerbParser
from xspec.errors import DiskFailed, StoreError
from xspec.spec.bundle import bundle
from xspec.spec.store import Store, write_whole


def main(arguments: list[str]) -> int:
    parser = VerbParser(prog="python -m xspec export", description="What is stored, in a form for elsewhere.")
    targets = parser.add_subparsers(dest="target", required=True, metavar="TARGET")
    spec = targets.add_parser("spec", help="a spec with all it stands on, in one file for `reproduce FILE`")
    spec.add_argument("id", metavar="ID", help="a spec id, or its beginning")
    spec.add_argument("-o", "--output", required=True, metavar="FILE")
    spec.add_argument("--store", default="mlruns", metavar="PATH")
    options = parser.parse_args(arguments)
    store = Store(options.store, create=False)
    spec_id = store.find_spec_id(options.id)
    path = Path(options.output)
    data = bundle(store, spec_id)
    try:
        write_whole(path.absolute(), data)
    except DiskFailed as error:
        raise StoreError(f"{path} cannot be written: {error.reason}") from None
    print(f"{spec_id} with its prompts, rules and manifest is in {path}; run it anywhere: reproduce {path}")
    return 0
