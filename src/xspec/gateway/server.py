"""The gateway's socket and the HTTP server on it."""

import asyncio
import contextlib
import errno
import gc
import ipaddress
import socket
import ssl
from collections.abc import Generator
from types import TracebackType
from typing import Self

import httpx2
import uvicorn

from xspec.errors import UserError
from xspec.gateway.app import GatewayApp

BACKLOG = 1024
KEEP_ALIVE_S = 60


def listen(host: str, port: int) -> socket.socket:
    """A listening socket. Raises UserError if there can be none."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, protocol)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(BACKLOG)
        except OSError:
            listening.close()
            raise
    except (OSError, OverflowError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or error
        taken = getattr(error, "errno", None) in (errno.EADDRINUSE, errno.EACCES)
        hint = "--port 0 takes a free one" if taken else "--host takes an address of this machine"
        raise UserError(f"cannot listen on port {port} of {host}: {why}; {hint}") from None
    return listening


def is_loopback(listening: socket.socket) -> bool:
    """Whether only programs on this machine can reach the socket."""
    return ipaddress.ip_address(listening.getsockname()[0]).is_loopback


def base_url(listening: socket.socket) -> str:
    """Where it is reached from this machine, with `/v1`."""
    host, port = listening.getsockname()[:2]
    address = ipaddress.ip_address(host)
    if address.is_unspecified:
        address = ipaddress.ip_address("::1" if address.version == 6 else "127.0.0.1")
    shown = f"[{address}]" if address.version == 6 else str(address)
    return f"http://{shown}:{port}/v1"


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Signals are the caller's: it also has a command to end."""
        yield


class GatewayServer:
    """Serves the application on the socket while its context is open; when it closes, calls under way are ended.

    It is open once it has answered. Raises whatever keeps it from that.
    """

    def __init__(self, app: GatewayApp, listening: socket.socket) -> None:
        self._app = app
        self._listening = listening
        config = uvicorn.Config(
            app,
            http="httptools",
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="critical",
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            backlog=BACKLOG,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=1,
        )
        self._server = _Server(config)
        self._serving: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._serving = asyncio.create_task(self._server.serve(sockets=[self._listening]))
        asked = asyncio.create_task(_ask(base_url(self._listening)))
        await asyncio.wait((self._serving, asked), return_when=asyncio.FIRST_COMPLETED)
        if self._serving.done():
            asked.cancel()
            await self._serving
        await asked
        # What is loaded by now stays: a full collection that walks it all would hold up every call under way.
        gc.collect()
        gc.freeze()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._serving is not None
        self._server.should_exit = True
        await self._app.aclose()
        await self._serving
        await self._app.aclose()


async def _ask(url: str) -> None:
    """A first request, so that nobody's call waits for what server and route only load when one comes."""
    plain = httpx2.AsyncHTTPTransport(verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), trust_env=False)
    async with httpx2.AsyncClient(transport=plain, trust_env=False) as http:
        await http.get(url)
