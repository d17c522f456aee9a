"""Bodies that other programs write: what the spec fixes is put in, and every other byte stays."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xspec.errors import SpecDrift
from xspec.route.body import same
from xspec.route.foreign import OBSERVED, Contradiction, ForeignBody, NotARequest, check_foreign

FIXED = {"model": "m-1", "temperature": 0, "seed": 7, "provider": {"only": ["a"], "allow_fallbacks": False}}
MESSAGES = [{"role": "user", "content": "hi"}]


class Lane:
    """The part of a lane that a body needs."""

    fixed = FIXED


def wire(raw: bytes, enforce: Any = "fill") -> tuple[bytes, dict[str, tuple[Any, Any]]]:
    body = ForeignBody(raw, enforce, ["m-1", "m-2"])
    sent = body.wire(Lane)  # type: ignore[arg-type]
    return sent, {change.field: (change.asked, change.sent) for change in body.changes}


SPELT = {
    "as orjson": lambda fields: json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode(),
    "with spaces": lambda fields: json.dumps(fields).encode(),
    "indented, ending in a newline": lambda fields: json.dumps(fields, indent=3).encode() + b"\n",
    "escaped": lambda fields: json.dumps(fields, ensure_ascii=True, separators=(" ,", ":\t")).encode(),
}
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.dictionaries(
    st.sampled_from([*FIXED, "top_p", "max_tokens", "n", "tools", "user", "models", "api_key", "x"])
    | st.text(max_size=6),
    VALUES,
    max_size=6,
).map(lambda fields: {**fields, "messages": MESSAGES})


@settings(max_examples=100, deadline=None)
@given(FIELDS, st.sampled_from(list(SPELT)))
def test_whatever_is_asked_what_is_sent_is_as_frozen(fields: dict[str, Any], spelling: str) -> None:
    raw = SPELT[spelling](fields)
    sent, changes = wire(raw)
    live = json.loads(sent)
    check_foreign(sent, FIXED)
    expected = {name: value for name, value in fields.items() if name in OBSERVED} | FIXED
    assert same(expected, live)
    for name, value in FIXED.items():
        assert (name in changes) == (name not in fields or not same(value, fields[name]))


@settings(max_examples=100, deadline=None)
@given(FIELDS, st.sampled_from(list(SPELT)))
def test_refused_exactly_when_it_contradicts(fields: dict[str, Any], spelling: str) -> None:
    asked = {name: value for name, value in fields.items() if value is not None and name not in OBSERVED}
    contradicts = any(name not in FIXED or not same(FIXED[name], value) for name, value in asked.items())
    try:
        wire(SPELT[spelling](fields), "refuse")
    except Contradiction:
        assert contradicts
    else:
        assert not contradicts


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200) | FIELDS.map(lambda fields: json.dumps(fields).encode()[3:]))
def test_bytes_that_are_no_request_are_refused_in_one_line(raw: bytes) -> None:
    said = ""
    try:
        check_foreign(wire(raw)[0], FIXED)
    except NotARequest as refused:
        said = str(refused)
    assert "\n" not in said


@pytest.mark.parametrize("enforce", ["fill", "refuse"])
def test_null_asks_for_nothing(enforce: str) -> None:
    """Of a field that the spec fixes, of one that it leaves out, and of one that nobody knows."""
    raw = json.dumps({"messages": MESSAGES, "temperature": None, "top_p": None, "models": None}).encode()
    sent, changes = wire(raw, enforce)
    assert json.loads(sent) == {"messages": MESSAGES, **FIXED}
    assert (changes["temperature"], changes["top_p"]) == ((None, 0), (None, "absent"))
    assert changes["models"] == (None, "absent")
    assert changes["seed"] == ("absent", 7)


@pytest.mark.parametrize("spelling", SPELT)
def test_every_other_field_keeps_its_bytes(spelling: str) -> None:
    values: Mapping[str, Any] = {
        "messages": [{"role": "user", "content": 'é\\/ " \u2028 {"temperature": 3}, }'}],
        "temperature": 1.5,
        "tools": [
            {"type": "function", "function": {"name": "f", "parameters": {"minimum": 1e-07, "x": 1.0}}}
        ],
        "unknown": {"a": [1, 2]},
        "n": 2,
    }
    raw = SPELT[spelling](values)
    sent, changes = wire(raw)
    for name in ("messages", "tools"):
        for part in (json.dumps(values[name]), json.dumps(values[name], separators=(" ,", ":\t"))):
            assert (part.encode() in raw) == (part.encode() in sent)
    assert same({**{n: values[n] for n in ("messages", "tools", "n")}, **FIXED}, json.loads(sent))
    assert changes["temperature"] == (1.5, 0)
    assert changes["unknown"] == ("(not shown)", "absent")


def test_a_body_that_is_as_frozen_is_sent_as_it_came() -> None:
    raw = json.dumps({**FIXED, "messages": MESSAGES, "temperature": 0.0}, indent=1).encode()
    assert wire(raw) == (raw, {})


def test_half_of_a_surrogate_pair_passes_as_it_was_escaped() -> None:
    raw = b'{"messages":[{"role":"user","content":"half \\ud83d"}],"model":"m-9"}'
    sent, _ = wire(raw)
    assert b'"half \\ud83d"' in sent


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", "not JSON"),
        (b"[]", "no object"),
        (b'{"model": "m"}', "messages"),
        (b'{"messages": []}', "messages"),
        (b'{"messages": [1], "seed": NaN}', "NaN"),
        (b'{"messages": [1], "model": "m-1", "model": "m-2"}', "'model' twice"),
        (b'{"messages": [{"role": "user", "role": "system"}]}', "'role' twice"),
        (b'{"messages": [1], "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deeply"),
        ('{"messages": [1]}'.encode("utf-16"), "not UTF-8"),
    ],
)
def test_what_cannot_be_forwarded(raw: bytes, said: str) -> None:
    with pytest.raises(NotARequest, match=said):
        wire(raw)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"model": "m-2"}, "body.model"),
        ({"temperature": False}, "body.temperature"),
        ({"seed": None}, "body.seed"),
        ({"top_p": 1}, "body.top_p"),
        ({"provider": {"only": ["b"], "allow_fallbacks": False}}, "body.provider"),
        ({"models": ["m-2"]}, "body.models"),
        ({"api_base": "http://elsewhere"}, "body.api_base"),
    ],
)
def test_the_guard_refuses_what_was_not_brought_into_line(change: dict[str, Any], field: str) -> None:
    with pytest.raises(SpecDrift) as drift:
        check_foreign(orjson.dumps({**FIXED, "messages": MESSAGES, **change}), FIXED)
    assert drift.value.field == field


def test_20_mb_go_through(kit: Any) -> None:
    big = "0123456789abcdef" * (20 * 2**16)
    body = {"messages": [{"role": "user", "content": big}], "temperature": 1, "model": "x"}

    async def run() -> None:
        async with kit.both(lambda n, asked: kit.Reply(kit.completion(big[:1000]))) as (upstream, gateway, _):
            for data in (orjson.dumps(body), json.dumps(body, indent=1).encode()):
                answer = await kit.post(gateway, data)
                assert answer.status_code == 200
            for asked in upstream.asked:
                assert asked.json["messages"] == body["messages"]
                assert asked.json["temperature"] == 0
            assert (await kit.post(gateway, b"x" * (64 * 2**20 + 1))).status_code == 413

    asyncio.run(run())
    assert [call["bytes"] > 20 * 2**20 for call in kit.rows("call")] == [True, True]


def test_what_the_ledger_cannot_hold_as_it_is_stands_there_as_its_text(kit: Any) -> None:
    """Integers beyond 64 bits, numbers beyond a double, and what is nested too deeply for a row."""
    huge, deep, deeper = 123456789012345678901234567890, "[" * 251 + "]" * 251, "[" * 900 + "]" * 900
    raw = (
        f'{{"messages": [{{"role": "user", "content": "x", "a": {huge}, "b": 1e999, "c": null}},'
        f'{{"role": "user", "content": {deep}}}, {{"role": "user", "content": {deeper}}}],'
        f'"seed": {huge}, "temperature": -1e999, "top_p": 1{"0" * 400}, "logit_bias": {{"5": {huge}}},'
        f'"tools": [{{"minimum": {huge}}}], "top_k": {deeper}}}'
    )

    async def run() -> None:
        async with kit.both(lambda n, asked: kit.Reply()) as (upstream, gateway, _):
            assert (await kit.post(gateway, raw.encode())).status_code == 200
            assert f'"a": {huge}, "b": 1e999'.encode() in upstream.asked[0].body

    asyncio.run(run())
    (call,) = kit.rows("call")
    asked = {change["field"]: change.get("asked") for change in call["changes"]}
    assert asked["seed"] == str(huge)
    assert asked["temperature"] == "-1e999"
    assert asked["top_p"].startswith("10000")
    assert asked["logit_bias"] == {"5": str(huge)}
    first, second, _third, _reply = kit.rows("step")[0]["added"]
    assert (first["a"], first["b"], first["c"]) == (str(huge), "1e999", None)
    assert json.dumps(second["content"]).count("[") == 251
    assert orjson.loads(kit.store.blob(call["tools"])) == [{"minimum": str(huge)}]


def test_a_long_value_is_cut_as_json() -> None:
    _, changes = wire(b'{"messages":[1],"logit_bias":{"a":null,"b":[' + b"true," * 99 + b"1]}}")
    assert changes["logit_bias"][0].startswith('{"a": null, "b": [true, true')
    assert changes["logit_bias"][0].endswith("…")


def test_wrong_bodies_are_told_so_and_recorded(kit: Any) -> None:
    async def run() -> None:
        async with kit.both(lambda n, asked: kit.Reply()) as (upstream, gateway, _):
            odd_stream = b'{"messages":[1],"stream":1}'
            for data in (b"", b"{", b"[1]", b'{"messages":[1],"a":1,"a":2}', odd_stream):
                answer = await kit.post(gateway, data)
                assert answer.status_code == 400
                assert answer.json()["error"]["code"] == "invalid_request"
                assert answer.headers["x-should-retry"] == "false"
            odd = {"messages": ["x", 3, None, {"role": 5}], "tools": {"a": [None]}, "stream": None}
            assert (await kit.post(gateway, odd)).status_code == 200
            assert len(upstream.asked) == 1

    asyncio.run(run())
    assert [call["ended"] for call in kit.rows("call")] == ["refused"] * 5 + ["answered"]
