"""Base URLs: every spelling of a host means itself, to the guard and on the wire, or is refused before a call."""

import asyncio
from typing import Any

import httpx2
import pytest

from xspec.errors import SpecDrift, UserError
from xspec.route.address import address_of, check_base_url
from xspec.route.faults import CallFailed
from xspec.route.guard import SENDING, Sending, check_address

SECRET = "hunter2hunter2"


@pytest.mark.parametrize(
    "base_url",
    [
        f"http://me:{SECRET}@127.0.0.1/v1",
        f"http://{SECRET}@127.0.0.1/v1",
        f"http://127.0.0.1\\@{SECRET}/v1",
        f"http://a@b@{SECRET}/v1",
        f"http://127.0.0.1/v1/@{SECRET}",
        f"http://127.0.0.1/v1#@{SECRET}",
        f"http://127.0.0.1/v1?key={SECRET}",
        f"http://127.0.0.1/v1?{SECRET}@h",
    ],
)
def test_user_info_and_queries_are_refused_without_echo(base_url: str) -> None:
    with pytest.raises(UserError) as refused:
        check_base_url(base_url)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    "base_url",
    [
        "http://127.0.0.1\r\nx-evil: 1/v1",
        "http://127.0.0.1/v1\r\nhost: evil",
        "http://127.0.0.1/v1%0d%0ax-evil:1",
        "http://127.0.0.1\t/v1",
        "http://127.0.0.1\0/v1",
        "http://127.0.0.1/v1\x7f",
        "http://host\\evil/v1",
        "http://host%2eevil/v1",
        "http://[::1/v1",
        "http://::1/v1",
        "http://[::1]evil/v1",
        "http://[fe80::1%25eth0]/v1",
        "http://[v1.x]/v1",
        "http://ex\u00e4mple.com/v1",
        "http://\uff45xample.com/v1",
        "http://example\u3002com/v1",
        "http://example.com\u2044evil/v1",
        "http://\u2100.com/v1",
        "http://exa\u00admple.com/v1",
        "http://\u202eexample.com/v1",
        "http://\u0661\u0662\u0667.0.0.1/v1",
        "http://127.0.0.1:\u0668\u0660/v1",
        "http://host:80:90/v1",
        "http://host:-1/v1",
        "http:/host/v1",
        "http:host/v1",
        "HTTP+unix://host/v1",
        "file:///etc/passwd",
    ],
)
def test_hosts_that_two_readers_could_take_differently_are_refused(base_url: str) -> None:
    with pytest.raises(UserError) as refused:
        check_base_url(base_url)
    assert "\n" not in str(refused.value)


SPELLINGS = {
    "http://127.0.0.1/v1": "127.0.0.1",
    "http://127.1/v1": "127.1",
    "http://0x7f.1/v1": "0x7f.1",
    "http://2130706433/v1": "2130706433",
    "http://localhost/v1": "localhost",
    "http://localhost./v1": "localhost.",
    "http://[::1]/v1": "::1",
    "http://[0:0:0:0:0:0:0:1]/v1": "0:0:0:0:0:0:0:1",
    "http://[::ffff:127.0.0.1]/v1": "::ffff:127.0.0.1",
    "http://xn--exmple-cua.com/v1": "xn--exmple-cua.com",
}


@pytest.mark.parametrize("base_url", SPELLINGS, ids=list(SPELLINGS))
def test_one_host_spelt_otherwise_is_another_to_the_guard(base_url: str) -> None:
    """No spelling is translated: the guard compares with what the spec says, letter by letter."""
    address = address_of(base_url, "/chat/completions")
    assert address.host == SPELLINGS[base_url]
    for other in SPELLINGS:
        live = address_of(other, "/chat/completions")
        request = httpx2.Request("POST", live.url)
        if other == base_url:
            check_address(request, address)
        else:
            with pytest.raises(SpecDrift) as drift:
                check_address(request, address)
            assert drift.value.field == "host"


@pytest.mark.parametrize("spelling", ["127.1", "0x7f.1", "2130706433", "localhost.", "[::ffff:127.0.0.1]"])
def test_a_request_to_another_spelling_of_the_same_server_is_not_sent(lab: Any, spelling: str) -> None:
    async def run() -> None:
        async with lab.routed() as (server, route):
            token = SENDING.set(Sending(lab.place, 0, lab.pins))
            body = lab.conversation().body(route._lanes["a"].opening)
            url = f"http://{spelling}:{server.port}/v1/chat/completions"
            headers = {"authorization": f"Bearer {lab.KEY}", "content-type": "application/json"}
            with pytest.raises(SpecDrift) as drift:
                await route._http.post(url, content=body, headers=headers)
            SENDING.reset(token)
            assert drift.value.field == "host"
            assert server.requests == []

    asyncio.run(run())


@pytest.mark.parametrize("host", ["127.1", "localhost", "LOCALHOST", "localhost."])
def test_an_odd_spelling_in_the_spec_goes_where_it_says(lab: Any, host: str) -> None:
    """It either arrives under the name that the spec gives, or fails as a connection: never somewhere else."""

    async def run() -> None:
        async with lab.served() as server:
            member = lab.member(server.port, base_url=f"http://{host}:{server.port}/v1")
            route = lab.make(lab.spec([member], route={"retry": {"max_attempts": 1}}))
            try:
                await lab.call(route)
            except CallFailed as failed:
                error: str | None = failed.token
            else:
                error = None
            await route.aclose()
            assert error in (None, "connection")
            assert [r.header("host") for r in server.requests] in ([], [f"{host.lower()}:{server.port}"])

    asyncio.run(run())


@pytest.mark.parametrize(
    "path", ["/v1\r\nx: 1", "/v1/chat completions", "/v1?x=1", "/v1#x", "/%0d%0a", "//h/v1", "v1"]
)
def test_paths_that_are_none(lab: Any, path: str) -> None:
    with pytest.raises((UserError, ValueError)):
        lab.make(lab.spec([lab.member(9, base_url="http://127.0.0.1:9", path=path)]))


@pytest.mark.parametrize("status", [300, 301, 302, 303, 305, 307, 308])
@pytest.mark.parametrize("to", ["host", "scheme", "port", "relative", "protocol-relative", "unreadable"])
def test_no_redirect_is_followed(lab: Any, status: int, to: str) -> None:
    async def run() -> None:
        async with lab.served() as trap:
            locations = {
                "host": f"http://localhost:{trap.port}/v1/chat/completions",
                "scheme": f"https://127.0.0.1:{trap.port}/v1/chat/completions",
                "port": f"http://127.0.0.1:{trap.port}/v1/chat/completions",
                "relative": "/v2/chat/completions",
                "protocol-relative": f"//127.0.0.1:{trap.port}/v1/chat/completions",
                "unreadable": "http://[::1/",
            }
            async with lab.routed(lab.http(status, location=locations[to])) as (server, route):
                with pytest.raises(Exception, match="redirects to") as stopped:
                    await lab.call(route)
                assert stopped.value.cause == "redirect"
                assert lab.counts(server) == (1, 1, 1)
                assert trap.requests == []

    asyncio.run(run())


@pytest.mark.parametrize("text", ["m-1\r\nx-evil: 1", "m-1\nAuthorization: Bearer x", 'm-1","model":"m-2'])
def test_a_model_name_stays_within_its_field(lab: Any, text: str) -> None:
    """JSON escapes it; no header is made from it."""

    async def run() -> None:
        extra = {"note": text, text: {"deep": [text]}}
        async with lab.routed(member={"model": text, "extra_body": extra}) as (server, route):
            await lab.call(route)
            (request,) = server.requests
            body = lab.parsed(request)
            assert (body["model"], body["note"], body[text]) == (text, text, {"deep": [text]})
            assert {name for name, _ in request.headers} <= {
                *("accept", "accept-encoding", "authorization", "connection", "content-length"),
                *(
                    "content-type",
                    "host",
                    "user-agent",
                    "x-stainless-retry-count",
                    "x-stainless-read-timeout",
                ),
            } | {name for name, _ in request.headers if name.startswith("x-stainless-")}

    asyncio.run(run())


@pytest.mark.parametrize("name", ["Model", "MODEL", "messages", "n", "stream", "tool_choice", "temperature"])
@pytest.mark.parametrize("value", ["x", None, {"nested": {"model": "m-2"}}])
def test_extra_body_cannot_stand_in_for_a_fixed_field(lab: Any, name: str, value: Any) -> None:
    """Fixed names are refused; a name that only looks like one travels beside it and changes nothing of it."""

    async def run() -> dict[str, Any]:
        async with lab.routed(member={"extra_body": {name: value}}) as (server, route):
            await lab.call(route)
            return dict(lab.parsed(server.requests[0]))

    if name in ("model", "messages", "n", "stream", "tool_choice", "temperature"):
        with pytest.raises(ValueError, match="extra_body holds"):
            asyncio.run(run())
    else:
        body = asyncio.run(run())
        assert (body["model"], body["temperature"], len(body["messages"])) == ("m-1", 0, 2)


def test_an_extra_body_with_a_key_twice_is_one_to_everyone(lab: Any) -> None:
    """The stored spec is parsed once into data: a doubled key cannot reach the wire."""
    data = lab.spec([lab.member(9, extra_body={"a": {"b": 1}})])
    doubled = data.replace(b'"b":1', b'"b":1,"b":2')
    assert doubled != data

    async def run() -> None:
        async with lab.served() as server:
            route = lab.make(doubled.replace(b"127.0.0.1:9/", b"127.0.0.1:%d/" % server.port))
            await lab.call(route)
            await route.aclose()
            assert server.requests[0].body.count(b'"b":') == 1

    asyncio.run(run())
