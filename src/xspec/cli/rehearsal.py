"""`python -m xspec rehearsal`: the simulated model on its own, as an endpoint for any client."""

import asyncio

import orjson

from xspec.benchmarks.pool import WorkerPool
from xspec.cli.parser import VerbParser
from xspec.cli.run import compile_plain
from xspec.errors import SpecError
from xspec.experiment.rehearse import rehearsal_config, rehearsal_members
from xspec.rehearsal import server
from xspec.rehearsal.config import RehearsalConfig
from xspec.spec.compose import compose
from xspec.spec.models import ExperimentSpec
from xspec.spec.store import Store


def main(arguments: list[str]) -> int:
    parser = VerbParser(
        prog="python -m xspec rehearsal",
        description="Serves the simulated model on loopback until it is interrupted; GET /stats counts its requests.",
    )
    parser.add_argument("--port", type=int, default=0, metavar="P", help="0 takes a free one")
    parser.add_argument("--host", default="127.0.0.1", metavar="H", help="a loopback address")
    parser.add_argument(
        "overrides", nargs="*", metavar="OVERRIDE", help="as for an experiment: provider.faults.stall=0"
    )
    options = parser.parse_args(arguments)
    server.loopback(options.host)
    compiled, store = compile_plain(compose(options.overrides))
    if not rehearsal_members(compiled.spec):
        raise SpecError(
            "rehearsal serves the members of provider=rehearsal, and these overrides choose another"
        )
    config = asyncio.run(_config(compiled.spec, store))
    server.serve(RehearsalConfig.parse(config, "of the overrides"), options.host, options.port)
    return 0


async def _config(spec: ExperimentSpec, store: Store) -> bytes:
    benchmark = spec.benchmark
    settings = benchmark.settings or {}
    async with WorkerPool(
        benchmark.kind, benchmark.version, benchmark.split, settings, members=1, log=None
    ) as pool:
        return orjson.dumps(await rehearsal_config([spec], store, pool))
