"""The gateway's server: open once it answers, and told at once where it cannot."""

import asyncio
import contextlib

import pytest
import uvicorn

from xspec.errors import UserError
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


def test_calls_under_way_when_it_closes_are_told_once_and_recorded(kit):
    """In the status that clients do not try again; they did not go away by themselves."""

    async def run() -> None:
        async with kit.both(lambda n, asked: kit.Reply(pieces=[asyncio.Event().wait])) as (
            upstream,
            gateway,
            _,
        ):
            asking = asyncio.create_task(kit.post(gateway, {"messages": kit.MESSAGES}))
            await asyncio.wait_for(upstream.come.wait(), 20)
        answer = await asking
        assert (answer.status_code, answer.headers["x-should-retry"]) == (400, "false")
        assert answer.json()["error"]["code"] == "closed"

    asyncio.run(run())
    (call,) = kit.rows("call")
    assert (call["ended"], call["status"]) == ("stopped", 400)


def test_an_address_that_cannot_be_listened_on_is_told_with_what_would_do():
    with contextlib.closing(listen("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UserError, match="--port 0 takes a free one"):
            listen("127.0.0.1", port)
    with pytest.raises(UserError, match="--host takes an address of this machine"):
        listen("192.0.2.1", 0)
