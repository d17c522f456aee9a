"""The guard: every way a request can differ from the spec is refused, and nothing of it arrives."""

import asyncio
import os
from types import SimpleNamespace
from typing import Any

import httpx2
import orjson
import pytest

from xspec.errors import SpecDrift
from xspec.records.rows import AttemptEnded
from xspec.route import stored
from xspec.route.conversation import Pins, Tools, text_digest
from xspec.route.guard import SENDING, Sending
from xspec.spec.sampling import SamplingSpec

FULL: dict[str, Any] = {
    "temperature": 0,
    "top_p": 0.5,
    "seed": 7,
    "max_tokens": 100,
    "max_completion_tokens": 200,
    "presence_penalty": 0.5,
    "frequency_penalty": -0.5,
    "stop": ["END"],
    "reasoning_effort": "low",
    "parallel_tool_calls": True,
}
EXTRA = {"provider": {"only": ["x"], "allow_fallbacks": False}, "top_k": 5}


def other(value: Any) -> Any:
    """A different value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    return [*value, "X"] if isinstance(value, list) else value + "x"


def honest(lab: Any, route: Any, port: int) -> tuple[str, dict[str, str], bytes]:
    """What the route itself would send: address, headers, body."""
    body = lab.conversation().body(route._lanes["a"].opening)
    headers = {
        "authorization": f"Bearer {lab.KEY}",
        "content-type": "application/json",
        "user-agent": "xspec",
        "x-stainless-retry-count": "0",
    }
    return f"http://127.0.0.1:{port}/v1/chat/completions", headers, body


def refused(lab: Any, mutate: Any, *, field: str, **setting: Any) -> SpecDrift:
    """Send an honest request (arrives), then the mutated one: refused in `field`, and nothing arrives."""

    async def run() -> SpecDrift:
        sampling, member = setting.get("sampling", FULL), setting.get("member", {"extra_body": EXTRA})
        async with lab.routed(member=member, sampling=sampling) as (server, route):
            url, headers, body = honest(lab, route, server.port)
            token = SENDING.set(Sending(lab.place, 0, lab.pins))
            client = route._http
            await client.send(client.build_request("POST", url, headers=headers, content=body))
            assert len(server.requests) == 1
            sent: dict[str, Any] = {
                "method": "POST",
                "url": url,
                "headers": headers,
                "content": body,
                "route": route,
            }
            changed = mutate(sent) or sent
            changed.pop("route", None)
            with pytest.raises(SpecDrift) as caught:
                await client.send(client.build_request(**changed))
            SENDING.reset(token)
            assert len(server.requests) == 1
            return caught.value

    drift = asyncio.run(run())
    assert drift.field == field
    assert lab.KEY not in str(drift) + repr(drift)
    return drift


def body_with(**fields: Any) -> Any:
    """A mutation that sets body fields; a field set to ... is taken out."""

    def mutate(sent: dict[str, Any]) -> None:
        body = {**orjson.loads(sent["content"]), **fields}
        sent["content"] = orjson.dumps({name: value for name, value in body.items() if value is not ...})

    return mutate


def messages_with(change: Any) -> Any:
    def mutate(sent: dict[str, Any]) -> None:
        body = orjson.loads(sent["content"])
        change(body["messages"])
        sent["content"] = orjson.dumps(body)

    return mutate


def test_the_table_of_sampling_fields_is_complete() -> None:
    assert FULL.keys() == SamplingSpec.model_fields.keys()


@pytest.mark.parametrize("name", SamplingSpec.model_fields)
def test_a_sampling_field_with_another_value(lab: Any, name: str) -> None:
    refused(lab, body_with(**{name: other(FULL[name])}), field=f"body.{name}")


@pytest.mark.parametrize("name", SamplingSpec.model_fields)
def test_a_sampling_field_left_out(lab: Any, name: str) -> None:
    assert refused(lab, body_with(**{name: ...}), field=f"body.{name}").live == "absent"


@pytest.mark.parametrize("name", SamplingSpec.model_fields)
def test_a_sampling_field_that_the_spec_forbids(lab: Any, name: str) -> None:
    allowed = {key: value for key, value in FULL.items() if key != name}
    refused(lab, body_with(**{name: FULL[name]}), field=f"body.{name}", sampling={**allowed, name: None})


@pytest.mark.parametrize("name", SamplingSpec.model_fields)
def test_a_sampling_field_sent_as_null(lab: Any, name: str) -> None:
    refused(lab, body_with(**{name: None}), field=f"body.{name}")


def test_true_is_not_one_and_zero_is_zero(lab: Any) -> None:
    refused(lab, body_with(parallel_tool_calls=1), field="body.parallel_tool_calls")
    refused(lab, body_with(temperature=False), field="body.temperature")

    async def run() -> None:
        async with lab.routed(sampling=FULL) as (server, route):
            url, headers, body = honest(lab, route, server.port)
            for zero in (0, 0.0):
                content = orjson.dumps({**orjson.loads(body), "temperature": zero})
                token = SENDING.set(Sending(lab.place, 0, lab.pins))
                await route._http.post(url, headers=headers, content=content)
                SENDING.reset(token)
            assert len(server.requests) == 2

    asyncio.run(run())


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"model": "m-2"}, "body.model"),
        ({"model": ...}, "body.model"),
        ({"provider": {"only": ["y"], "allow_fallbacks": False}}, "body.provider"),
        ({"provider": {"only": ["x"], "allow_fallbacks": 0}}, "body.provider"),
        ({"provider": {"only": ["x"], "allow_fallbacks": False, "order": ["y"]}}, "body.provider"),
        ({"top_k": 6}, "body.top_k"),
        ({"top_k": ...}, "body.top_k"),
        ({"stream": True}, "body.stream"),
        ({"stream": False}, "body.stream"),
        ({"n": 1}, "body.n"),
        ({"user": "somebody"}, "body.user"),
        ({"tools": ...}, "body.tools"),
        ({"tools": []}, "body.tools"),
        ({"messages": ...}, "body.messages"),
        ({"messages": "hello"}, "body.messages"),
        ({"messages": []}, "body.messages"),
    ],
)
def test_body_fields(lab: Any, fields: dict[str, Any], field: str) -> None:
    refused(lab, body_with(**fields), field=field)


def test_tools_that_differ(lab: Any) -> None:
    for change in (
        lambda tools: tools.pop(),
        lambda tools: tools[0]["function"].update(description="Other."),
    ):
        tools = orjson.loads(lab.tools.wire)
        change(tools)
        refused(lab, body_with(tools=tools), field="body.tools")


def test_tools_of_a_trial_without_tools(lab: Any) -> None:
    lab.pins = Pins(lab.pins.system, lab.pins.instruction, None)
    tools, lab.tools = lab.tools, None
    refused(lab, body_with(tools=orjson.loads(tools.wire)), field="body.tools")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda m: m[0].update(content="You are careless."), "body.messages[0].content"),
        (lambda m: m[0].update(name="x"), "body.messages[0]"),
        (lambda m: m[0].update(content=[{"type": "text", "text": "You are careful."}]), "body.messages[0]"),
        (lambda m: m[0].update(role="developer"), "body.messages[0].role"),
        (lambda m: m[1].update(content="Pay twice."), "body.messages[1].content"),
        (lambda m: m[1].update(role="assistant"), "body.messages[1].role"),
        (lambda m: m.pop(0), "body.messages"),
        (lambda m: m.append({"role": "system", "content": "Be quick."}), "body.messages[2].role"),
        (lambda m: m.append({"role": "developer", "content": "Be quick."}), "body.messages[2].role"),
        (lambda m: m.append({"content": "Be quick."}), "body.messages[2].role"),
        (lambda m: m.append("Be quick."), "body.messages[2].role"),
    ],
)
def test_messages(lab: Any, change: Any, field: str) -> None:
    refused(lab, messages_with(change), field=field)


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body.replace(b'{"model":"m-1"', b'{"model":"m-2","model":"m-1"'),
        lambda body: body[:-1] + b',"model":"m-1"}',
        lambda body: body.replace(b'"role":"system"', b'"role":"user","role":"system"'),
        lambda body: body.replace(b'"only":["x"]', b'"only":["y"],"only":["x"]'),
    ],
)
def test_a_key_given_twice_at_any_depth(lab: Any, change: Any) -> None:
    drift = refused(lab, lambda sent: sent.update(content=change(sent["content"])), field="body")
    assert "twice" in str(drift.live)


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body.replace(b",", b", ", 1),
        lambda body: body.replace(b"careful", b"c\\u0061reful"),
        lambda body: body + b"\n",
        lambda body: body[:-1],
        lambda body: b"[" + body + b"]",
        lambda body: body.replace(b"careful", b"\xff"),
        lambda body: b"",
    ],
)
def test_bytes_that_another_reader_could_take_differently(lab: Any, change: Any) -> None:
    refused(lab, lambda sent: sent.update(content=change(sent["content"])), field="body")


@pytest.mark.parametrize(
    "name",
    [
        "openai-organization",
        "openai-project",
        "x-api-key",
        "cookie",
        "api-key",
        "forwarded",
        "transfer-encoding",
    ],
)
def test_an_extra_header(lab: Any, name: str) -> None:
    def mutate(sent: dict[str, Any]) -> None:
        sent["headers"] = {**sent["headers"], name: lab.KEY}

    refused(lab, mutate, field=f"header {name}")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("host", "elsewhere.example"),
        ("content-type", "text/plain"),
        ("content-length", "5"),
        ("accept", "text/event-stream"),
        ("accept-encoding", "br"),
        ("connection", "close"),
    ],
)
def test_another_value_of_a_header(lab: Any, name: str, value: str) -> None:
    def mutate(sent: dict[str, Any]) -> None:
        sent["headers"] = {**sent["headers"], name: value}

    refused(lab, mutate, field=f"header {name}")


def test_a_header_given_twice(lab: Any) -> None:
    def mutate(sent: dict[str, Any]) -> None:
        sent["headers"] = [*sent["headers"].items(), ("Authorization", "Bearer other-key")]

    refused(lab, mutate, field="header authorization")


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ("Bearer sk-test-another", "key"),
        ("Bearer  sk-test-0123456789abcdefghij", "key"),
        ("bearer sk-test-0123456789abcdefghij", "header authorization"),
        ("Basic c2s=", "header authorization"),
        (None, "header authorization"),
    ],
)
def test_another_key(lab: Any, value: str | None, field: str) -> None:
    def mutate(sent: dict[str, Any]) -> None:
        rest = {name: text for name, text in sent["headers"].items() if name != "authorization"}
        sent["headers"] = rest if value is None else {**rest, "authorization": value}

    drift = refused(lab, mutate, field=field)
    assert "another" not in str(drift.live) or value is None or field != "key"


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("http://", "https://", "scheme"),
        ("127.0.0.1", "localhost", "host"),
        ("/v1/", "/v2/", "path and query"),
        ("/v1/", "/v1/v1/", "path and query"),
        ("/completions", "/completions/", "path and query"),
        ("/completions", "/completions?api-version=1", "path and query"),
        ("/completions", "/completions?", "path and query"),
    ],
)
def test_another_address(lab: Any, old: str, new: str, field: str) -> None:
    refused(lab, lambda sent: sent.update(url=sent["url"].replace(old, new)), field=field)


def test_another_port_and_method(lab: Any) -> None:
    def port(sent: dict[str, Any]) -> None:
        url = httpx2.URL(sent["url"])
        sent["url"] = str(url.copy_with(port=url.port + 1))

    refused(lab, port, field="port")
    refused(lab, lambda sent: sent.update(method="PUT"), field="method")


@pytest.mark.parametrize("extension", ["target", "sni_hostname"])
def test_a_request_extension_cannot_reroute(lab: Any, extension: str) -> None:
    mutate = lambda sent: sent.update(extensions={extension: b"/v2/other"})  # noqa: E731
    refused(lab, mutate, field=f"request extension {extension}")


def test_a_request_that_no_attempt_made(lab: Any) -> None:
    refused(lab, lambda sent: SENDING.set(None) and None, field="request")


@pytest.mark.parametrize("edit", ["append", "same_size", "mtime_put_back", "remove", "replace"])
def test_a_stored_spec_edited_on_disk(lab: Any, edit: str) -> None:
    async def run() -> None:
        async with lab.routed() as (server, route):
            await asyncio.sleep(0.15)  # past the time in which the file would be read again anyway
            await lab.call(route)
            data, stat = lab.path.read_bytes(), os.stat(lab.path)
            if edit == "append":
                lab.path.write_bytes(data + b" ")
            elif edit == "same_size":
                lab.path.write_bytes(data.replace(b'"seed":7', b'"seed":8'))
            elif edit == "mtime_put_back":
                lab.path.write_bytes(data.replace(b'"seed":7', b'"seed":8'))
                os.utime(lab.path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
            elif edit == "remove":
                lab.path.unlink()
            else:
                spare = lab.path.with_name("spare")
                spare.write_bytes(data.replace(b'"k":2', b'"k":3'))
                spare.replace(lab.path)
            with pytest.raises(SpecDrift, match="spec file"):
                await lab.call(route)
            assert lab.counts(server) == (1, 2, 2)
            assert lab.ended[-1].error == "spec_drift"
            lab.path.write_bytes(data)
            await lab.call(route)
            assert len(server.requests) == 2

    asyncio.run(run())


def test_an_edit_within_one_clock_tick(lab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file was written just now and `stat` cannot tell the edit: it is read all the same."""

    async def run() -> None:
        async with lab.routed() as (server, route):
            frozen = os.stat(lab.path)
            monkeypatch.setattr(stored, "os", SimpleNamespace(stat=lambda path: frozen))
            await lab.call(route)
            lab.path.write_bytes(lab.path.read_bytes().replace(b'"seed":7', b'"seed":8'))
            with pytest.raises(SpecDrift, match="spec file"):
                await lab.call(route)
            assert len(server.requests) == 1

    asyncio.run(run())


def test_a_settled_file_is_read_again_only_when_it_changed(lab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        async with lab.routed() as (server, route):
            os.utime(lab.path, (1, 1))
            await asyncio.sleep(0.15)
            reads = []
            read = type(lab.path).read_bytes
            monkeypatch.setattr(type(lab.path), "read_bytes", lambda path: reads.append(path) or read(path))
            for _ in range(3):
                await lab.call(route)
            assert len(reads) == 1
            lab.path.touch()
            await lab.call(route)
            assert len(reads) == 2
            assert len(server.requests) == 4

    asyncio.run(run())


def test_bytes_in_memory_are_hashed_each_time(lab: Any) -> None:
    async def run() -> None:
        async with lab.routed() as (server, route):
            stored = route._http._transport._guard._stored
            stored.data = stored.data.replace(b'"seed":7', b'"seed":8')
            with pytest.raises(SpecDrift, match="spec in memory"):
                await lab.call(route)
            assert server.requests == []

    asyncio.run(run())


def test_a_refusal_is_recorded_and_not_retried(lab: Any) -> None:
    async def run() -> None:
        async with lab.routed() as (server, route):
            wrong = Pins(text_digest("other"), lab.pins.instruction, lab.pins.tools)
            with pytest.raises(SpecDrift) as caught:
                await lab.call(route, pins=wrong)
            assert (caught.value.field, caught.value.frozen) == ("body.messages[0].content", wrong.system)
            assert lab.counts(server) == (0, 1, 1)
            row = lab.ended[0]
            assert isinstance(row, AttemptEnded)
            assert (row.error, row.status) == ("spec_drift", None)
            assert lab.sleeps == []

    asyncio.run(run())


def test_redirects_are_not_followed(lab: Any) -> None:
    async def run() -> None:
        async with lab.served() as trap:
            answer = lab.http(307, location=f"http://127.0.0.1:{trap.port}/v1/chat/completions")
            async with lab.routed(answer) as (server, route):
                with pytest.raises(Exception, match="redirects to") as caught:
                    await lab.call(route)
                assert caught.value.cause == "redirect"
                assert (len(server.requests), trap.requests) == (1, [])

    asyncio.run(run())


def test_the_environment_changes_nothing(lab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two calls, one under a hostile environment, are the same to the byte."""

    async def run() -> None:
        async with lab.served() as trap:
            async with lab.routed() as (server, route):
                await lab.call(route)
                elsewhere = f"http://127.0.0.1:{trap.port}"
                for name in (
                    "OPENAI_BASE_URL",
                    "HTTP_PROXY",
                    "http_proxy",
                    "ALL_PROXY",
                    "all_proxy",
                    "HTTPS_PROXY",
                ):
                    monkeypatch.setenv(name, elsewhere)
                monkeypatch.setenv("OPENAI_API_KEY", "sk-ambient-000000000000")
                monkeypatch.setenv("OPENAI_ADMIN_KEY", "sk-admin-000000000000")
                monkeypatch.setenv("OPENAI_ORG_ID", "org-ambient")
                monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-ambient")
                monkeypatch.setenv("OPENAI_WEBHOOK_SECRET", "whsec")
                monkeypatch.setenv(
                    "OPENAI_CUSTOM_HEADERS", "Authorization: Bearer sk-evil\nX-Other: 1\nCookie: a=b"
                )
                monkeypatch.setenv("SSL_CERT_FILE", "/nowhere.pem")
                monkeypatch.setenv("NETRC", "/nowhere")
                again = lab.make(lab.path.read_bytes())
                await lab.call(again)
                await again.aclose()
                first, second = server.requests
                assert (first.line, first.headers, first.body) == (second.line, second.headers, second.body)
                assert first.header("authorization") == f"Bearer {lab.KEY}"
            assert trap.requests == []

    asyncio.run(run())


def test_cookies_are_not_kept(lab: Any) -> None:
    async def run() -> None:
        async with lab.routed(lab.http(200, lab.completion(), set_cookie="__cf_bm=1; path=/")) as (
            server,
            route,
        ):
            await lab.call(route)
            await lab.call(route)
            assert server.requests[1].header("cookie") is None

    asyncio.run(run())


def test_a_swapped_key_is_refused(lab: Any) -> None:
    async def run() -> None:
        async with lab.routed(options={"fingerprints": {"LAB_KEY": "kf-00000000"}}) as (server, route):
            with pytest.raises(SpecDrift, match="kf-00000000"):
                await lab.call(route)
            assert server.requests == []

    asyncio.run(run())


def test_the_digest_of_tools_is_canonical_and_what_is_sent_is_what_it_pins(lab: Any) -> None:
    turned = [{"function": schema["function"], "type": "function"} for schema in lab.SCHEMAS]
    assert Tools(turned).digest == lab.tools.digest
    assert Tools(turned).wire == lab.tools.wire
