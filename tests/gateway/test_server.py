"""The gateway's server: open once it answers, and told at once where it cannot."""

import asyncio
import contextlib

import pytest
import uvicorn

from xspec.gateway.server import GatewayServer, listen


async def no_app(scope, receive, send):
    raise AssertionError("nothing is asked of it")


def test_a_server_that_cannot_start_says_so_instead_of_leaving_callers_waiting(monkeypatch):
    def broken(self):
        raise RuntimeError("no protocol to load")

    monkeypatch.setattr(uvicorn.Config, "load", broken)

    async def serve() -> None:
        with contextlib.closing(listen("127.0.0.1", 0)) as listening:
            async with asyncio.timeout(20), GatewayServer(no_app, listening):
                raise AssertionError("it is not open")

    with pytest.raises(RuntimeError, match="no protocol to load"):
        asyncio.run(serve())
