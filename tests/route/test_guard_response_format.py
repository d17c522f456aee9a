"""The response format under the guard: pinned by the trial like its tools, absent where the trial has none."""

import asyncio
from typing import Any

import orjson
import pytest

from xspec.errors import SpecDrift
from xspec.route.conversation import Conversation, Pins, ResponseFormat, Tools, text_digest
from xspec.route.guard import SENDING, Sending

FORMAT = {
    "type": "json_schema",
    "json_schema": {
        "schema": {"type": "object", "properties": {"amount": {"type": "number", "minimum": 1e-07}}},
        "name": "choice",
    },
}
FROZEN = ResponseFormat(FORMAT)


def pins(lab: Any, *, tools: Tools | None = None, response_format: ResponseFormat | None = FROZEN) -> Pins:
    return Pins(
        text_digest(lab.SYSTEM),
        text_digest(lab.INSTRUCTION),
        tools.digest if tools else None,
        response_format.digest if response_format else None,
    )


def sent(lab: Any, body: bytes, frozen: Pins, **member: Any) -> SpecDrift | None:
    """What the guard says of a body, and that it arrived if and only if the guard was content."""

    async def run() -> SpecDrift | None:
        async with lab.routed(member=member) as (server, route):
            url = f"http://127.0.0.1:{server.port}/v1/chat/completions"
            headers = {"authorization": f"Bearer {lab.KEY}", "content-type": "application/json"}
            whole = route._lanes["a"].opening + body
            token = SENDING.set(Sending(lab.place, 0, frozen))
            drift = None
            try:
                await route._http.post(url, headers=headers, content=whole)
            except SpecDrift as error:
                drift = error
            SENDING.reset(token)
            assert len(server.requests) == (drift is None)
            return drift

    return asyncio.run(run())


def body(lab: Any, **fields: Any) -> bytes:
    """A body after its opening, with the frozen format; a field set to `...` is left out."""
    whole = orjson.loads(Conversation(lab.SYSTEM, lab.INSTRUCTION, response_format=FROZEN).body(b"{"))
    chosen = {**whole, **fields}
    return orjson.dumps({name: value for name, value in chosen.items() if value is not ...})[1:]


def test_the_frozen_format_passes(lab: Any) -> None:
    conversation = Conversation(lab.SYSTEM, lab.INSTRUCTION, response_format=FROZEN)
    assert sent(lab, conversation.body(b""), pins(lab)) is None
    assert sent(lab, body(lab), pins(lab)) is None


def test_a_call_sends_it(lab: Any) -> None:
    async def run() -> None:
        async with lab.routed() as (server, route):
            conversation = Conversation(lab.SYSTEM, lab.INSTRUCTION, response_format=FROZEN)
            await lab.call(route, conversation=conversation, pins=pins(lab))
            sent_body = lab.parsed(server.requests[0])
            assert sent_body["response_format"] == FORMAT
            assert "tools" not in sent_body

    asyncio.run(run())


def test_its_order_of_keys_is_no_part_of_it() -> None:
    turned = {name: FORMAT[name] for name in reversed(FORMAT)}
    assert (ResponseFormat(turned).digest, ResponseFormat(turned).wire) == (FROZEN.digest, FROZEN.wire)


def changed(path: tuple[str, ...], value: Any) -> Any:
    copy: Any = orjson.loads(FROZEN.wire)
    at = copy
    for part in path[:-1]:
        at = at[part]
    if value is ...:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return copy


@pytest.mark.parametrize(
    "live",
    [
        changed(("type",), "json_object"),
        changed(("json_schema", "name"), "other"),
        changed(("json_schema", "name"), ...),
        changed(("json_schema", "strict"), True),
        changed(("json_schema", "schema", "properties", "amount", "minimum"), 0),
        changed(("json_schema", "schema", "properties", "amount", "minimum"), ...),
        changed(("json_schema", "schema", "properties", "to"), {"type": "string"}),
        {"type": "text"},
        {},
        [],
        "json",
        False,
    ],
)
def test_another_format_is_refused(lab: Any, live: Any) -> None:
    drift = sent(lab, body(lab, response_format=live), pins(lab))
    assert drift is not None
    assert (drift.field, drift.frozen) == ("body.response_format", FROZEN.digest)


def test_it_may_not_be_left_out_or_null(lab: Any) -> None:
    drift = sent(lab, body(lab, response_format=...), pins(lab))
    assert drift is not None
    assert (drift.field, drift.live) == ("body.response_format", "absent")
    drift = sent(lab, body(lab, response_format=None), pins(lab))
    assert drift is not None
    assert drift.field == "body.response_format"


@pytest.mark.parametrize("live", [FORMAT, {"type": "text"}, {}, None])
def test_a_trial_without_one_may_not_send_one(lab: Any, live: Any) -> None:
    drift = sent(lab, body(lab, response_format=live), pins(lab, response_format=None))
    assert drift is not None
    assert (drift.field, drift.frozen) == ("body.response_format", "absent")


def test_it_is_no_licence_for_tools_or_other_fields(lab: Any) -> None:
    for field, value in (("tools", lab.SCHEMAS), ("tools", []), ("grammar", "root ::= .")):
        drift = sent(lab, body(lab, **{field: value}), pins(lab))
        assert drift is not None
        assert drift.field == f"body.{field}"


def test_tools_are_no_licence_for_it(lab: Any) -> None:
    fields = {"tools": orjson.loads(lab.tools.wire)}
    frozen = pins(lab, tools=lab.tools, response_format=None)
    assert sent(lab, body(lab, response_format=..., **fields), frozen) is None
    drift = sent(lab, body(lab, **fields), frozen)
    assert drift is not None
    assert drift.field == "body.response_format"


def test_a_format_given_twice_is_refused(lab: Any) -> None:
    drift = sent(lab, body(lab)[:-1] + b',"response_format":' + FROZEN.wire + b"}", pins(lab))
    assert drift is not None
    assert "twice" in str(drift)


def test_one_in_the_extra_body_is_fixed_like_the_rest_of_it(lab: Any) -> None:
    extra = {"extra_body": {"response_format": {"type": "json_object"}}}
    frozen = pins(lab, response_format=None)
    assert sent(lab, body(lab, response_format=...), frozen, **extra) is None
    drift = sent(lab, body(lab, response_format={"type": "text"}), frozen, **extra)
    assert drift is not None
    assert "response_format" in str(drift)
