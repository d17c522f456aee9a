"""Fuzzed requests and replies: only the frozen request leaves; what is no reply is a documented error."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from xspec.errors import RouteStopped, SpecDrift
from xspec.route.faults import AgentFault, CallFailed
from xspec.route.guard import SENDING, Sending
from xspec.route.reply import Reply
from xspec.route.transport import GuardedTransport
from xspec.route.waits import allowance, asked_wait

BOUNDED = settings(
    max_examples=250,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
SAMPLING = {"temperature": 0, "seed": 7, "stop": ["END"], "max_tokens": 100}
EXTRA = {"provider": {"only": ["x"], "allow_fallbacks": False}}
ODD_TEXT = st.text(max_size=12) | st.sampled_from(["\ud800", "\r\nx: 1", "\0", "system", "m-1", "Bearer x"])
LEAF = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | ODD_TEXT
JSON = st.recursive(
    LEAF,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ODD_TEXT, inner, max_size=3),
    max_leaves=8,
)


class Wire(httpx2.AsyncBaseTransport):
    """Stands where the wire would be: keeps what passed the guard, answers with `response`."""

    def __init__(self) -> None:
        self.passed: list[bytes] = []
        self.response: httpx2.Response | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.passed.append(b"".join([part async for part in request.stream]))
        assert self.response is not None
        return self.response


class _Body(httpx2.AsyncByteStream):
    def __init__(self, data: bytes) -> None:
        self._data = data

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._data


@pytest.fixture
def wired(lab: Any) -> tuple[Any, Any, Wire]:
    """The laboratory, a route of its spec with the real guard, and the wire behind it."""
    route = lab.make(
        lab.spec(
            [lab.member(9, extra_body=EXTRA)],
            sampling=SAMPLING,
            route={"retry": {"max_attempts": 2, "backoff_s": 0}, "max_wait_s": 3},
        )
    )
    wire = Wire()
    transport = route._http._transport
    assert isinstance(transport, GuardedTransport)
    transport._inner = wire
    return lab, route, wire


def _places(value: Any, where: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value inside, the whole first."""
    found = [where]
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        found += _places(item, (*where, key))
    return found


def _changed(draw: Any, value: Any, *, odd: Any = JSON) -> Any:
    """JSON with one to three values replaced, removed, doubled or joined by another, at any depth."""
    whole = json.loads(json.dumps(value))
    for _ in range(draw(st.integers(1, 3))):
        where = draw(st.sampled_from(_places(whole)))
        if not where:
            continue
        parent = whole
        for key in where[:-1]:
            parent = parent[key]
        what = draw(st.sampled_from(["replace", "remove", "add", "double"]))
        if what == "replace":
            parent[where[-1]] = draw(odd)
        elif what == "remove":
            del parent[where[-1]]
        elif isinstance(parent, list):
            parent.insert(where[-1], draw(odd) if what == "add" else parent[where[-1]])
        else:
            parent[draw(ODD_TEXT)] = draw(odd)
    return whole


@BOUNDED
@given(data=st.data())
def test_a_changed_request_does_not_leave(wired: Any, data: st.DataObject) -> None:
    """Mutated as JSON, as bytes, in its headers or its address. Only the part after the instruction is the agent's."""
    lab, route, wire = wired
    honest = lab.conversation().body(route._lanes["a"].opening)
    headers = {
        "authorization": f"Bearer {lab.KEY}",
        "content-type": "application/json",
        "user-agent": "xspec",
    }
    url, body, how = "http://127.0.0.1:9/v1/chat/completions", honest, data.draw(st.sampled_from(MANNERS))
    if how == "json":
        changed = _changed(data.draw, orjson.loads(honest))
        body = json.dumps(changed, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")
    elif how == "bytes":
        at = data.draw(st.integers(0, len(honest)))
        body = honest[:at] + data.draw(st.binary(max_size=6)) + honest[at + data.draw(st.integers(0, 4)) :]
    elif how == "headers":
        name = data.draw(
            st.sampled_from(["x-a", "authorization", "host", "te", "content-length", "cookie", "via"])
        )
        value = data.draw(
            st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=20)
        )
        headers[name] = value
    else:
        path = data.draw(st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=8))
        url += path.replace("#", "")
    wire.passed.clear()
    wire.response = httpx2.Response(200, stream=_Body(lab.http(200)))
    same = body == honest and how in ("json", "bytes")

    async def run() -> None:
        request = route._http.build_request("POST", url, headers=headers, content=body)
        unchanged = how == "url" and str(request.url) == "http://127.0.0.1:9/v1/chat/completions"
        token = SENDING.set(Sending(lab.place, 0, lab.pins))
        try:
            await route._http.send(request)
        except SpecDrift as drift:
            refused = str(drift)
        else:
            refused = ""
        finally:
            SENDING.reset(token)
        if refused:
            assert lab.KEY not in refused
            assert wire.passed == []
        else:
            assert same or unchanged or _agents_own(orjson.loads(body), orjson.loads(honest))
            assert wire.passed == [body]

    asyncio.run(run())


MANNERS = ["json", "json", "json", "bytes", "bytes", "headers", "url"]


def _agents_own(live: Any, frozen: Any) -> bool:
    """Whether they differ in messages after the instruction alone (or in the order of keys)."""
    shorter = {**live, "messages": live["messages"][:2]}
    return bool(shorter == frozen)


STATUSES = st.sampled_from(
    [200, 200, 200, 200, 201, 204, 302, 400, 401, 404, 413, 429, 429, 500, 503, 599, 999]
)
NUMBERS = st.sampled_from(
    ["0", "-1", "1e300", "1e400", "nan", "inf", "1_0", "\u0661", "9" * 400, "1s", "5m9s"]
)
DATES = st.sampled_from(["Mon, 01 Jan 9999 00:00:00 +9999", "Mon, 99 Foo 2026", "Fri, 31 Dec 1 00:00:00 GMT"])
SECONDS = st.from_regex(r"(\d{1,320}(ms|s|m|h|d)){1,3}", fullmatch=True)
WAITS = NUMBERS | DATES | SECONDS | st.text(max_size=10)
CHARSETS = st.sampled_from(
    ["utf-8", "undefined", "idna", "utf-16", "utf-7", "hex", "zlib", "unicode_escape", "x", ""]
)
LIMITS = ("retry-after", "retry-after-ms", "x-ratelimit-reset-tokens", "x-ratelimit-remaining-tokens")
OTHERS = ("location", "x-request-id", "x-litellm-model-id", "set-cookie", "content-encoding")
ODD_VALUES = st.text(max_size=20) | st.sampled_from(["gzip", "br", "http://[::1", "//\udfff"])


@st.composite
def headers_of_replies(draw: Any) -> list[tuple[bytes, bytes]]:
    """Headers that a reply is read by, with values that are none."""
    pairs = {"content-type": f"application/json; charset={draw(CHARSETS)}"}
    pairs |= draw(st.dictionaries(st.sampled_from(LIMITS), WAITS, max_size=3))
    pairs |= draw(st.dictionaries(st.sampled_from(OTHERS), ODD_VALUES, max_size=2))
    return [(name.encode(), value.encode("utf-8", "surrogatepass")) for name, value in pairs.items()]


ERRORS = {"error": {"message": "no", "code": "x", "type": "y", "innererror": {"code": "z"}}}
NEST = st.sampled_from([1, 250, 251, 252, 253, 254, 255, 1000, 1022, 1023, 1024, 1025, 5000])


@settings(BOUNDED, max_examples=500)
@given(data=st.data())
def test_a_changed_reply_is_a_reply_or_a_documented_error(wired: Any, data: st.DataObject) -> None:
    """Mutated completions and errors, nested ones, random bytes. Rows stay balanced; what is taken can be sent back."""
    lab, route, wire = wired
    tool = {"id": "t", "type": "function", "function": {"name": "pay", "arguments": "{}"}}
    message = {"role": "assistant", "content": "done", "tool_calls": [tool]}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    plain = data.draw(st.sampled_from([lab.completion(choices=[choice], provider="p"), ERRORS]))
    how = data.draw(st.sampled_from(["json", "json", "json", "nested", "bytes"]))
    body = (
        data.draw(st.binary(max_size=60))
        if how == "bytes"
        else json.dumps(_changed(data.draw, plain)).encode()
    )
    if how == "nested":
        depth, text = data.draw(NEST), data.draw(st.sampled_from([b'"done"', b'"no"', b'"x"', b'"t"']))
        body = body.replace(text, b"[" * depth + b"]" * depth)
    status, headers = data.draw(STATUSES), data.draw(headers_of_replies())
    lab.rows.clear()
    route._stopped = None

    async def run() -> Any:
        wire.response = None

        async def answer(request: httpx2.Request) -> httpx2.Response:
            assert isinstance(request.stream, httpx2.AsyncByteStream)
            return httpx2.Response(status, headers=headers, stream=_Body(body))

        wire.handle_async_request = answer  # type: ignore[method-assign]
        # A pause of one example must not make the next one wait for it.
        route._lanes["a"].pacer._meter._window.until = 0.0
        return await route.call(lab.conversation(), lab.pins, lab.place)

    said = ""
    try:
        reply = asyncio.run(run())
    except (CallFailed, RouteStopped, AgentFault) as error:
        said = str(error)
    else:
        assert isinstance(reply, Reply)
        orjson.dumps({"messages": [reply.message]})
    assert lab.KEY not in said
    assert len(said) < 1500
    assert len(lab.ended) * 2 == len(lab.rows)
    assert lab.rows
    assert not [row for row in lab.ended if row.error == "internal_error"]
    for row in lab.rows:
        orjson.dumps(row)


@settings(BOUNDED, max_examples=400)
@given(
    headers=st.dictionaries(
        st.sampled_from(
            [
                "retry-after",
                "retry-after-ms",
                "x-ratelimit-reset-a",
                "x-ratelimit-remaining-a",
                "ratelimit-reset",
            ]
        ),
        WAITS,
    )
)
def test_a_wait_is_a_finite_number_of_seconds_or_none(headers: dict[str, str]) -> None:
    wait = asked_wait(headers, 1_800_000_000.0)
    assert wait is None or 0 < wait < float("inf")
    left = allowance(headers, 1_800_000_000.0, 10)
    assert left is None or (left.requests >= 0 and 0 < left.reset_s < float("inf"))
