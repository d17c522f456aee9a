"""The simulated model's server process.

Started by xspec with `--config -`: one line of JSON comes on stdin, one line `{"port": N}` goes to stdout,
and the process ends by itself when stdin closes, so that a killed parent leaves nothing behind. Started by
hand it prints its base URL and runs until it is interrupted.
"""

import argparse
import asyncio
import errno
import ipaddress
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import orjson

from xspec.errors import UserError
from xspec.rehearsal.config import RehearsalConfig
from xspec.rehearsal.simulator import Simulator
from xspec.rehearsal.wire import Connection

STDIN = "-"
BACKLOG = 512


def main(argv: Sequence[str] | None = None) -> int:
    """The process that `process.RehearsalServer` starts. Returns the exit code: 0, or 2 for wrong input (one line)."""
    options = _options().parse_args(argv)
    try:
        config = _read_config(options.config)
        serve(config, options.host, options.port, supervised=options.config == STDIN)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def serve(config: RehearsalConfig, host: str, port: int, *, supervised: bool = False) -> None:
    """Serve until interrupted, or, supervised, until stdin closes. Raises UserError if it cannot listen."""
    asyncio.run(_serve(config, loopback(host), port, supervised=supervised))


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="xspec rehearsal", description="Serve the SIMULATED MODEL on a loopback address."
    )
    parser.add_argument("--host", default="127.0.0.1", help="a loopback address (default: %(default)s)")
    parser.add_argument("--port", type=int, default=0, help="the port; 0 takes a free one (default)")
    parser.add_argument("--config", help="a JSON file of members and tasks, or - for one line on stdin")
    return parser


def loopback(host: str) -> str:
    """The loopback address `host` stands for. Raises UserError for any other."""
    if host == "localhost":
        return "127.0.0.1"
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        raise UserError(f"--host {host} is not a loopback address, such as 127.0.0.1") from None
    if not address.is_loopback:
        raise UserError(
            f"--host {host} is not a loopback address; the simulated model serves this machine only"
        )
    return host


def _read_config(source: str | None) -> RehearsalConfig:
    if source is None:
        return RehearsalConfig({}, {})
    if source == STDIN:
        return RehearsalConfig.parse(_first_line(0), "on stdin")
    try:
        document = Path(source).read_bytes()
    except OSError as error:
        raise UserError(f"rehearsal config {source} cannot be read: {error.strerror}") from None
    return RehearsalConfig.parse(document, source)


def _first_line(descriptor: int) -> bytes:
    # Read unbuffered: a buffered reader would keep the end of stdin from the event loop.
    read = bytearray()
    while b"\n" not in read[-65536:]:
        data = os.read(descriptor, 65536)
        if not data:
            break
        read += data
    return bytes(read.partition(b"\n")[0])


async def _serve(config: RehearsalConfig, host: str, port: int, *, supervised: bool) -> None:
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    if supervised:
        _end_with_stdin(loop, ended)
    simulator = Simulator(config)

    def connection() -> Connection:
        return Connection(simulator.reply, simulator.tally.other)

    try:
        server = await loop.create_server(connection, host, port, backlog=BACKLOG)
    except (OSError, OverflowError) as error:
        raise UserError(_why_not(host, port, error)) from None
    bound = server.sockets[0].getsockname()[1]
    if supervised:
        print(orjson.dumps({"port": bound}).decode(), flush=True)
    else:
        shown = f"[{host}]" if ":" in host else host
        print(f"SIMULATED MODEL at http://{shown}:{bound}/v1 (stop with Ctrl-C)", flush=True)
    await ended.wait()
    server.close()


def _end_with_stdin(loop: asyncio.AbstractEventLoop, ended: asyncio.Event) -> None:
    def on_readable() -> None:
        if not os.read(0, 65536):
            loop.remove_reader(0)
            ended.set()

    try:
        loop.add_reader(0, on_readable)
    except PermissionError:
        # A regular file or /dev/null cannot be waited for, and has no end that would mean anything.
        raise UserError("--config - expects a pipe on stdin; give a file as --config FILE") from None


def _why_not(host: str, port: int, error: OSError | OverflowError) -> str:
    if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
        return f"port {port} on {host} is in use; choose another --port, or 0 for a free one"
    return f"cannot listen on port {port} of {host}: {error}"


if __name__ == "__main__":
    sys.exit(main())
