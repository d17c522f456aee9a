"""`python -m xspec reproduce ID`: execute a stored spec again, from the store alone."""

import argparse

from xspec.cli.outcome import tell_end
from xspec.experiment.compile import Compiled
from xspec.experiment.execute import execute
from xspec.spec.store import Store


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m xspec reproduce",
        description="Begins a new execution of a stored spec; conf/ is not read.",
    )
    parser.add_argument("id", metavar="ID", help="a spec id, or its beginning")
    parser.add_argument("--store", default="mlruns", metavar="PATH")
    parser.add_argument("--workers", type=int, default=None, metavar="N", help="trials at once")
    options = parser.parse_args(arguments)
    store = Store(options.store)
    spec = store.spec(store.find_spec_id(options.id))
    workers = options.workers or (16 if spec.route.members[0].kind == "rehearsal" else 4)
    return tell_end(execute([Compiled(spec, None, workers, 0.05)], store, anew=True), store)
