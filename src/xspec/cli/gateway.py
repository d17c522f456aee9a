"""`python -m xspec gateway`: any program that calls models, under a frozen route."""

import argparse
import asyncio
import os
import shlex
from collections.abc import Sequence

from rich.console import Console

from xspec.cli import split_command
from xspec.cli.parser import VerbParser
from xspec.cli.projection import bring_up_to_date
from xspec.cli.say import say
from xspec.errors import SpecError, XspecError
from xspec.experiment.compile import Compiled
from xspec.experiment.gateway_execution import AT_ONCE, OpenGateway, run_gateway
from xspec.experiment.gateway_spec import behind_gateway, compile_gateway, gateway_of
from xspec.records.executions import ExecutionFolder
from xspec.report.gateway import gateway_figures
from xspec.report.gateway_text import print_gateway
from xspec.route.foreign import Enforce
from xspec.spec.compose import compose
from xspec.spec.config import validate_config
from xspec.spec.secrets import scan_plain
from xspec.spec.store import Store


def main(arguments: list[str]) -> int:
    own, command = split_command(["gateway", *arguments])
    parser = VerbParser(
        prog="python -m xspec gateway",
        usage="python -m xspec gateway [OVERRIDE … | ID] [option …] [-- COMMAND …]",
        description="Serves an OpenAI-compatible endpoint on loopback whose calls keep to a frozen route and sampling. "
        "COMMAND finds it in OPENAI_BASE_URL and OPENAI_API_KEY, and the gateway ends with it.",
    )
    parser.add_argument(
        "what", nargs="*", metavar="OVERRIDE|ID", help="as for an experiment: provider=openai"
    )
    parser.add_argument(
        "--enforce",
        choices=("fill", "refuse"),
        help="what becomes of a request that contradicts the spec: it is brought into line (default), or refused",
    )
    parser.add_argument("--host", default="127.0.0.1", metavar="H", help="where to listen (%(default)s)")
    parser.add_argument("--port", type=_port, default=0, metavar="P", help="0 takes a free one (default)")
    parser.add_argument("--store", default=None, metavar="PATH")
    options = parser.parse_args(own[1:])
    compiled, store = _compiled(options.what, options.enforce, options.store, command)
    for warning in compiled.warnings:
        say(warning)
    chosen = any(word.startswith("workers=") for word in options.what)
    try:
        end = run_gateway(
            store,
            compiled,
            command,
            host=options.host,
            port=options.port,
            attempts=compiled.workers if chosen else AT_ONCE,
            opened=lambda gateway: _opened(gateway, bool(command)),
        )
    except XspecError:
        store.discard_if_made_here()
        raise
    if end.stopped is not None:
        say(f"stopped: {end.stopped}")
    if end.interrupted and command:
        say("interrupted; the command was ended")
    folder = ExecutionFolder(store.path / "executions" / end.execution_id)
    print_gateway(gateway_figures(store, folder), Console(stderr=True))
    bring_up_to_date(store)
    return end.exit_code()


def _port(text: str) -> int:
    if not (text.isdecimal() and int(text) <= 65535):
        raise argparse.ArgumentTypeError(f"{text!r} is no port: 0 to 65535, 0 takes a free one")
    return int(text)


def _compiled(
    words: Sequence[str], enforce: Enforce | None, store_path: str | None, command: Sequence[str]
) -> tuple[Compiled, Store]:
    again = ("gateway", *words, *(("--enforce", enforce) if enforce else ()))
    if len(words) == 1 and "=" not in words[0]:
        if not Store.looks_like_id(words[0]):
            raise SpecError(
                f"{words[0]!r} is neither a spec id like xs-1a2b… nor an override like provider=openai"
            )
        store = Store(store_path or "mlruns")
        spec = store.spec(store.find_spec_id(words[0]))
        return gateway_of(behind_gateway(spec, enforce), store, again), store
    for word in words:
        if word.startswith(("agent=", "agent.", "+agent")):
            raise SpecError(
                f"{word.partition('=')[0]}: behind a gateway no agent of xspec's plays; leave it out"
            )
    overrides = [*words, *([f"store={store_path}"] if store_path else [])]
    if not any(word.startswith("benchmark=") for word in words):
        overrides.insert(0, "benchmark=external")
    plain = compose(overrides)
    scan_plain(plain, os.environ)
    config = validate_config(plain)
    store = Store(config.store)
    try:
        return asyncio.run(compile_gateway(config, store, enforce or "fill", again)), store
    except XspecError:
        store.discard_if_made_here()
        raise


def _opened(gateway: OpenGateway, has_command: bool) -> None:
    """With a command the token is in its environment and nowhere else; without one somebody has to be told it."""
    say(f"gateway for {gateway.spec.id} at {gateway.base_url}, execution {gateway.execution_id}")
    if not gateway.private:
        say("it can be reached from other machines, by whoever has the token")
    if not has_command:
        print(f"export OPENAI_BASE_URL={shlex.quote(gateway.base_url)}", flush=True)
        print(f"export OPENAI_API_KEY={gateway.token}", flush=True)
