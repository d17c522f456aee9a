"""Route.call: what goes out, what comes back, and what a bad reply cannot do."""

import asyncio
import gzip
import subprocess
import sys
from typing import Any

import orjson
import pytest
from pydantic import ValidationError

from xspec.errors import SpecDrift, UserError
from xspec.records.rows import Place
from xspec.route import transport
from xspec.route.conversation import Conversation
from xspec.route.faults import CallFailed
from xspec.route.members import Binding
from xspec.spec.canonical import digest_of
from xspec.spec.members import RehearsalBehaviour, RehearsalFaults

REHEARSAL = {
    "kind": "rehearsal",
    "name": "a",
    "model": "simulated",
    "behaviour": {name: int(name.startswith("flip_")) for name in RehearsalBehaviour.model_fields},
    "faults": dict.fromkeys(RehearsalFaults.model_fields, 0),
}


def test_what_goes_out_and_what_comes_back(lab: Any) -> None:
    async def run() -> None:
        async with lab.routed(member={"extra_body": {"top_k": 5}}) as (server, route):
            conversation = lab.conversation()
            conversation.add({"role": "assistant", "content": "Wait. ✓"})
            reply = await lab.call(route, conversation=conversation)
            request = server.requests[0]
            assert request.line == "POST /v1/chat/completions HTTP/1.1"
            body = lab.parsed(request)
            assert list(body) == ["model", "temperature", "seed", "top_k", "messages", "tools"]
            assert body["messages"] == [
                {"role": "system", "content": lab.SYSTEM},
                {"role": "user", "content": lab.INSTRUCTION},
                {"role": "assistant", "content": "Wait. ✓"},
            ]
            assert body["tools"] == lab.SCHEMAS
            assert reply.message == {"role": "assistant", "content": "done"}
            assert (reply.finish_reason, reply.prompt_tokens, reply.completion_tokens) == ("stop", 11, 3)
            assert (reply.attempts, reply.drift, reply.served_model) == (1, [], "m-1")
            assert reply.waited_s < 0.1
            assert reply.request_digest == digest_of(request.body)
            started, ended = lab.rows
            assert (started.request_digest, started.spec_id) == (reply.request_digest, route.spec_id)
            assert (started.at, started.concurrency, started.member) == (lab.NOW, 1, "a")
            assert (ended.status, ended.error, ended.prompt_tokens) == (200, None, 11)

    asyncio.run(run())


def test_an_attempt_is_recorded_before_it_is_sent(lab: Any) -> None:
    async def run() -> None:
        def full_disk(row: Any) -> None:
            raise OSError(28, "No space left on device")

        async with lab.routed(options={"record": full_disk}) as (server, route):
            with pytest.raises(OSError, match="No space"):
                await lab.call(route)
            assert server.requests == []

    asyncio.run(run())


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b'"half \\ud83d a pair"', "half � a pair"),
        (b'"whole \\ud83d\\ude00"', "whole 😀"),
        (b'"bad \xff byte"', "bad � byte"),
    ],
)
def test_text_without_a_utf8_form_is_replaced(lab: Any, raw: bytes, text: str) -> None:
    async def run() -> None:
        body = orjson.dumps(lab.completion()).replace(b'"done"', raw)
        async with lab.routed(lab.in_turn(lab.http(200, body))) as (server, route):
            conversation = lab.conversation()
            reply = await lab.call(route, conversation=conversation)
            assert reply.message["content"] == text
            conversation.add(reply.message)
            await lab.call(route, conversation=conversation)
            assert lab.parsed(server.requests[1])["messages"][2]["content"] == text

    asyncio.run(run())


def test_lone_surrogates_of_an_agent_are_replaced() -> None:
    conversation = Conversation("a\ud800", "b", extra=[{"role": "user", "content": "c\udc00", "n": 2**70}])
    body = orjson.loads(conversation.body(b"{"))
    assert [message["content"] for message in body["messages"]] == ["a�", "b", "c�"]


def test_a_reply_without_end_is_cut_off(lab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "REPLY_LIMIT", 100_000)
    long = orjson.dumps(lab.completion("x" * 200_000))
    replies = [lab.http(200, long), lab.http(200, gzip.compress(long), content_encoding="gzip")]

    async def run() -> None:
        async with lab.routed(lab.in_turn(*replies)) as (server, route):
            await lab.call(route)
            assert [row.error for row in lab.ended] == ["malformed_reply", "malformed_reply", None]
            assert lab.counts(server) == (3, 3, 3)

    asyncio.run(run())


def test_compressed_replies(lab: Any) -> None:
    body = orjson.dumps(lab.completion("packed"))
    replies = [
        lab.http(200, b"not gzip", content_encoding="gzip"),
        lab.http(200, body, content_encoding="br"),
        lab.http(200, gzip.compress(body), content_encoding="gzip"),
    ]

    async def run() -> None:
        async with lab.routed(lab.in_turn(*replies)) as (server, route):
            reply = await lab.call(route)
            assert (reply.message["content"], reply.attempts) == ("packed", 3)
            assert server.requests[0].header("accept-encoding") == "identity"

    asyncio.run(run())


def test_odd_token_counts_are_unknown(lab: Any) -> None:
    async def run() -> None:
        odd = [{"prompt_tokens": True, "completion_tokens": -1}, None, [], {"prompt_tokens": 2.5}]
        answers = [lab.http(200, lab.completion(usage=usage)) for usage in odd]
        async with lab.routed(lab.in_turn(*answers)) as (_, route):
            for _ in odd:
                reply = await lab.call(route)
                assert (reply.prompt_tokens, reply.completion_tokens) == (None, None)

    asyncio.run(run())


def test_a_member_that_xspec_starts_itself(lab: Any) -> None:
    """Its address comes from the binding, by place; its key opens nothing; its own name is the reference."""

    async def run() -> None:
        answer = lab.in_turn(
            lab.http(200, lab.completion(model="another")), lab.http(200, lab.completion(model="simulated"))
        )
        async with lab.served(answer) as server:
            binding = Binding(
                f"http://127.0.0.1:{server.port}", lambda p: f"/t/x/{p.run}/{p.task}/v1/chat/completions"
            )
            route = lab.make(lab.spec([REHEARSAL]), environ={}, bindings={"a": binding})
            drifted, well = await lab.call(route), await lab.call(route)
            await route.aclose()
            assert [request.target for request in server.requests] == [
                "/t/x/0/lab.task_0/v1/chat/completions"
            ] * 2
            assert drifted.drift == ["served_model: simulated -> another"]
            assert well.drift == []
            assert route.fingerprints == {}

    asyncio.run(run())


def test_a_call_at_another_place_than_its_address_is_refused(lab: Any) -> None:
    async def run() -> None:
        async with lab.served() as server:
            paths = iter(["/warm", "/t/1", "/t/2"])
            binding = Binding(f"http://127.0.0.1:{server.port}", lambda place: next(paths))
            route = lab.make(lab.spec([REHEARSAL]), bindings={"a": binding})
            with pytest.raises(SpecDrift, match="path and query"):
                await lab.call(route)
            await route.aclose()
            assert server.requests == []

    asyncio.run(run())


def test_attempts_of_a_call_float_by_granularity(lab: Any) -> None:
    async def members_met(granularity: str) -> list[str]:
        lab.rows.clear()
        async with lab.served(lab.http(500)) as server:
            members = [lab.member(server.port, name=name) for name in ("a", "b")]
            floating = {
                "mode": "floating",
                "granularity": granularity,
                "seed": 1,
                "retry": {"max_attempts": 12},
            }
            route = lab.make(lab.spec(members, route=floating))
            with pytest.raises(CallFailed, match="12 attempts"):
                await lab.call(route)
            await route.aclose()
            return [row.member for row in lab.ended]

    assert len(set(asyncio.run(members_met("call")))) == 1
    met = asyncio.run(members_met("attempt"))
    assert set(met) == {"a", "b"}
    assert asyncio.run(members_met("attempt")) == met


@pytest.mark.parametrize("name", ["model", "temperature", "stream", "n", "messages", "tools", "stop"])
def test_extra_body_cannot_take_a_field_of_the_spec(lab: Any, name: str) -> None:
    with pytest.raises(ValidationError, match=f"extra_body holds {name}"):
        lab.make(lab.spec([lab.member(9, extra_body={name: 1})]))


def test_a_missing_key_is_named_before_anything_else(lab: Any) -> None:
    with pytest.raises(UserError, match="LAB_KEY is not set"):
        lab.make(lab.spec([lab.member(9)]), environ={})


@pytest.mark.parametrize("proxy", ["http://user:pw@127.0.0.1:1", "ftp://127.0.0.1:1", "127.0.0.1:1"])
def test_a_proxy_that_cannot_be_used(lab: Any, proxy: str) -> None:
    with pytest.raises(UserError, match="proxy") as caught:
        lab.make(lab.spec([lab.member(9)], route={"proxy": proxy}))
    assert "pw" not in str(caught.value)


def test_a_proxy_of_the_spec_is_used(lab: Any) -> None:
    async def run() -> None:
        async with lab.served() as proxy:
            route = lab.make(
                lab.spec(
                    [lab.member(9, base_url="http://model.invalid/v1")],
                    route={"proxy": f"http://127.0.0.1:{proxy.port}"},
                )
            )
            await lab.call(route)
            await route.aclose()
            assert proxy.requests[0].target == "http://model.invalid/v1/chat/completions"

    asyncio.run(run())


def test_a_ca_file_must_be_the_one_of_the_spec(lab: Any) -> None:
    ca = b"-----BEGIN CERTIFICATE-----\nno\n-----END CERTIFICATE-----\n"
    data = lab.spec([lab.member(9)], route={"ca": digest_of(ca)})
    for wrong in (None, ca + b"\n"):
        with pytest.raises(SpecDrift, match=r"route\.ca"):
            lab.make(data, ca_bytes=wrong)
    with pytest.raises(UserError, match="PEM"):
        lab.make(data, ca_bytes=ca)


def test_an_https_member_is_not_trusted_without_its_ca(lab: Any) -> None:
    """A plain server behind an https address: the handshake fails, nothing readable arrives."""

    async def run() -> None:
        async with lab.served() as server:
            base = {"base_url": f"https://127.0.0.1:{server.port}/v1"}
            route = lab.make(
                lab.spec(
                    [lab.member(server.port, **base)], route={"timeout_s": 1, "retry": {"max_attempts": 1}}
                )
            )
            with pytest.raises(CallFailed, match="no usable reply"):
                await lab.call(route)
            await route.aclose()
            assert server.requests == []
            assert [row.error for row in lab.ended] == ["timeout"]

    asyncio.run(run())


def test_composing_does_not_pay_for_an_http_stack() -> None:
    code = "import sys, xspec.route.members, xspec.route.keys; print({'openai', 'httpx2', 'orjson'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_places_are_kept_apart_under_concurrency(lab: Any) -> None:
    async def run() -> None:
        async with lab.served() as server:
            binding = Binding(f"http://127.0.0.1:{server.port}", lambda p: f"/{p.run}/{p.step}")
            route = lab.make(lab.spec([REHEARSAL]), bindings={"a": binding})
            places = [Place(run, "lab.task_0", 0, step) for run in range(5) for step in range(8)]
            await asyncio.gather(*(route.call(lab.conversation(), lab.pins, place) for place in places))
            await route.aclose()
            assert sorted(r.target for r in server.requests) == sorted(f"/{p.run}/{p.step}" for p in places)

    asyncio.run(run())


@pytest.mark.parametrize("escaped", [False, True])
def test_a_reply_that_echoes_the_key_does_not_bring_it_in(lab: Any, escaped: bool) -> None:
    """In content, in the model's name, in a header, in JSON's escapes: rows, lock and agent get a placeholder."""
    spelt = "".join(f"\\u{ord(letter):04x}" for letter in lab.KEY) if escaped else lab.KEY
    body = orjson.dumps(lab.completion("your key is KEY", system_fingerprint="KEY")).replace(
        b"KEY", spelt.encode()
    )
    settled: list[str] = []

    async def run() -> None:
        answer = lab.http(200, body, x_request_id=lab.KEY)
        options = {"settle": lambda *told: settled.append(repr(told))}
        async with lab.routed(answer, options=options) as (_, route):
            reply = await lab.call(route)
            assert reply.message["content"] == "your key is [key]"
            assert lab.KEY not in repr((reply, lab.rows, settled))
            assert "[key]" in "".join(settled)

    asyncio.run(run())
