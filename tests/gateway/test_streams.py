"""Streamed calls: passed on while they come, retried before the first byte alone, broken where the provider breaks."""

import asyncio
from typing import Any

import openai
import pytest

ASKED = {"model": "small-2026-01-01", "stream": True}


async def chunks_of(client: openai.AsyncOpenAI, messages: Any, **more: Any) -> list[Any]:
    stream = await client.chat.completions.create(messages=messages, **ASKED, **more)
    return [chunk async for chunk in stream]


def test_a_stream_is_passed_on_byte_for_byte_and_read(kit: Any) -> None:
    events = kit.stream_of("Hel", "lo", usage=True)

    async def run() -> None:
        answer = lambda n, asked: kit.Reply(pieces=events)  # noqa: E731
        async with kit.both(answer) as (upstream, gateway, client):
            chunks = await chunks_of(client, kit.MESSAGES, stream_options={"include_usage": True})
            assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == "Hello"
            assert chunks[-1].usage.completion_tokens == 2
            assert upstream.asked[0].json["stream_options"] == {"include_usage": True}
            raw = await kit.post(gateway, {**ASKED, "messages": kit.MESSAGES})
            assert raw.content == b"".join(events)
            assert raw.headers["content-type"] == "text/event-stream"

    asyncio.run(run())
    first, second = kit.rows("call")
    assert (first["streamed"], first["ended"], first["status"]) == (True, "answered", 200)
    assert second["again"] is None
    assert [row["completion_tokens"] for row in kit.rows("attempt")] == [2, 2]
    assert kit.rows("step")[0]["added"] == [*kit.MESSAGES, {"role": "assistant", "content": "Hello"}]


def test_pieces_arrive_while_the_provider_still_talks(kit: Any) -> None:
    async def run() -> None:
        more = asyncio.Event()
        first, *rest = kit.stream_of("a", "b")
        async with kit.both(lambda n, asked: kit.Reply(pieces=[first, more.wait, *rest])) as (_, _g, client):
            stream = await client.chat.completions.create(messages=kit.MESSAGES, **ASKED)
            assert (await anext(stream)).choices[0].delta.role == "assistant"
            more.set()
            assert [c.choices[0].delta.content async for c in stream] == ["a", "b", None]

    asyncio.run(run())


def test_events_cut_anywhere_are_put_together(kit: Any) -> None:
    """Whole events are passed on, however the network cuts them."""
    data = b"".join(kit.stream_of("Hel", "lo €"))
    pieces = [data[at : at + 7] for at in range(0, len(data), 7)]

    async def run() -> None:
        async with kit.both(lambda n, asked: kit.Reply(pieces=pieces)) as (_, _g, client):
            chunks = await chunks_of(client, kit.MESSAGES)
            assert "".join(c.choices[0].delta.content or "" for c in chunks) == "Hello €"

    asyncio.run(run())


def test_tool_calls_and_several_choices_are_recorded_whole(kit: Any) -> None:
    def call(**part: Any) -> dict[str, Any]:
        return {"tool_calls": [{"index": 0, **part}]}

    def other(word: str, finish: str | None = None) -> bytes:
        choice = {"index": 1, "delta": {"content": word}, "finish_reason": finish}
        event: bytes = kit.chunk({}, choices=[choice])
        return event

    pieces = [
        kit.chunk({"role": "assistant", **call(id="call_1", function={"name": "pay", "arguments": ""})}),
        kit.chunk(call(function={"arguments": '{"a":'})),
        other("or "),
        kit.chunk(call(function={"arguments": " 1}"})),
        kit.chunk({}, "tool_calls"),
        other("not", "stop"),
        b"data: [DONE]\n\n",
    ]

    async def run() -> None:
        async with kit.both(lambda n, asked: kit.Reply(pieces=pieces)) as (upstream, _g, client):
            await chunks_of(client, kit.MESSAGES, n=2)
            assert upstream.asked[0].json["n"] == 2

    asyncio.run(run())
    (step,) = kit.rows("step")
    assert step["added"][-1] == {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "pay", "arguments": '{"a": 1}'}}
        ],
    }
    assert step["finish_reason"] == "tool_calls"
    assert kit.rows("call")[0]["others"] == [{"role": "assistant", "content": "or not"}]


BEFORE = {
    "a server error": lambda kit: kit.Reply({"error": {"message": "busy"}}, 503),
    "a rate limit": lambda kit: kit.Reply({"error": {"message": "slow"}}, 429, retry_after="0.01"),
    "a break": lambda kit: kit.Reply(pieces=[], breaks=True),
    "an error as the first event": lambda kit: kit.Reply(
        pieces=[b'data: {"error": {"message": "overloaded", "code": 503}}\n\n']
    ),
    "no stream": lambda kit: kit.Reply(b"<html>"),
}


@pytest.mark.parametrize("fault", BEFORE.values(), ids=list(BEFORE))
def test_a_fault_before_the_first_byte_is_tried_again(kit: Any, fault: Any) -> None:
    async def run() -> None:
        answer = lambda n, asked: kit.Reply(pieces=kit.stream_of("ok")) if n else fault(kit)  # noqa: E731
        async with kit.both(answer) as (upstream, _g, client):
            chunks = await chunks_of(client, kit.MESSAGES)
            assert chunks[1].choices[0].delta.content == "ok"
            assert len(upstream.asked) == 2

    asyncio.run(run())
    assert [row["error"] is None for row in kit.rows("attempt")] == [False, True]
    (call,) = kit.rows("call")
    assert (call["ended"], call["again"]) == ("answered", None)


AFTER = {
    "the connection": ([], True, "connection", "Connection error"),
    "in the middle of an event": ([b'data: {"choi'], False, "malformed_reply", "Connection error"),
    "an orderly end without an end": ([], False, "malformed_reply", "Connection error"),
    "an error event": (
        [b'data: {"error": {"message": "overloaded"}}\n\n'],
        False,
        "malformed_reply",
        "overloaded",
    ),
    "garbage": ([b"data: {nonsense}\n\n"], False, "malformed_reply", "Expecting property name"),
}


@pytest.mark.parametrize(("pieces", "breaks", "token", "seen"), AFTER.values(), ids=list(AFTER))
def test_a_break_in_the_middle_is_passed_on_as_one(
    kit: Any, pieces: list[bytes], breaks: bool, token: str, seen: str
) -> None:
    async def run() -> None:
        begun = kit.stream_of("Hel")[:2]
        answer = lambda n, asked: kit.Reply(pieces=[*begun, *pieces], breaks=breaks)  # noqa: E731
        async with kit.both(answer) as (upstream, gateway, _):
            async with kit.client(gateway, max_retries=2) as client:
                with pytest.raises(Exception, match=seen):
                    await chunks_of(client, kit.MESSAGES)
            assert len(upstream.asked) == 1, "it had begun, so it is not tried again"

    asyncio.run(run())
    (call,) = kit.rows("call")
    assert (call["ended"], call["status"]) == ("broken", 200)
    assert [row["error"] for row in kit.rows("attempt")] == [token]
    assert kit.rows("step") == []


@pytest.mark.parametrize("escaped", [False, True])
def test_a_key_that_the_provider_echoes_is_not_passed_on(kit: Any, escaped: bool) -> None:
    said = b"".join(kit.stream_of(f"your key is {kit.KEY}, is it not"))
    if escaped:
        said = said.replace(kit.KEY.encode(), "".join(f"\\u{ord(c):04X}" for c in kit.KEY).encode())
    pieces = [said[at : at + 40] for at in range(0, len(said), 40)]

    async def run() -> None:
        async with kit.both(lambda n, asked: kit.Reply(pieces=pieces)) as (_, _g, client):
            chunks = await chunks_of(client, kit.MESSAGES)
            text = "".join(c.choices[0].delta.content or "" for c in chunks)
            assert text == "your key is [key], is it not"

    asyncio.run(run())
    assert kit.KEY not in kit.execution().journal_path(1).read_text()


def test_an_event_of_several_lines_is_one(kit: Any) -> None:
    lines = [event.replace(b', "choices"', b',\ndata: "choices"') for event in kit.stream_of("Hello")]

    async def run() -> None:
        async with kit.both(lambda n, asked: kit.Reply(pieces=lines)) as (_, _g, client):
            chunks = await chunks_of(client, kit.MESSAGES)
            assert "".join(c.choices[0].delta.content or "" for c in chunks) == "Hello"

    asyncio.run(run())
    assert kit.rows("step")[0]["added"][-1]["content"] == "Hello"


def test_silence_in_the_middle_is_a_timeout(kit: Any) -> None:
    async def run() -> None:
        pieces = [*kit.stream_of("Hel")[:2], asyncio.Event().wait]
        async with kit.both(lambda n, asked: kit.Reply(pieces=pieces), "route.timeout_s=0.3") as (
            _,
            _g,
            client,
        ):
            with pytest.raises(openai.APIConnectionError):
                await chunks_of(client, kit.MESSAGES)

    asyncio.run(run())
    assert [row["error"] for row in kit.rows("attempt")] == ["timeout"]


def test_a_slow_reader_holds_the_provider_back_and_is_not_timed_out(kit: Any) -> None:
    """64 MB would not fit between them: the upstream gets stuck, and goes on when the reader does."""
    sent = 0
    big = "x" * 500_000

    def answer(n: int, asked: Any) -> Any:
        def counted(word: str) -> bytes:
            nonlocal sent
            sent += 1
            event: bytes = kit.chunk({"content": word})
            return event

        class Pieces(list[Any]):
            def __iter__(self) -> Any:
                yield kit.chunk({"role": "assistant"})
                for _ in range(60):
                    yield counted(big)
                yield from (kit.chunk({}, "stop"), b"data: [DONE]\n\n")

        return kit.Reply(pieces=Pieces())

    async def run() -> None:
        async with kit.both(answer, "route.timeout_s=0.5") as (_, _gateway, client):
            head = client.with_streaming_response.chat.completions.create(messages=kit.MESSAGES, **ASKED)
            async with head as response:
                lines = response.iter_lines()
                await anext(lines)
                seen = -1
                while seen != sent:  # until nothing moves any more, for longer than the route's limit
                    seen = sent
                    await asyncio.sleep(1.0)
                assert sent < 55, "nothing held the upstream back"
                size = 0
                async for line in lines:
                    size += len(line)
                assert size > 60 * len(big)

    asyncio.run(run())
    assert kit.rows("call")[0]["ended"] == "answered"


@pytest.mark.parametrize("stage", ["before the first byte", "in the middle"])
def test_a_client_that_goes_away_frees_everything(kit: Any, stage: str) -> None:
    async def run() -> None:
        begun = kit.stream_of("Hel")[:2] if stage == "in the middle" else []
        answer = lambda n, asked: kit.Reply(pieces=[*begun, asyncio.Event().wait])  # noqa: E731
        async with kit.both(answer) as (upstream, _gateway, client):
            task = asyncio.ensure_future(chunks_of(client, kit.MESSAGES))
            await asyncio.wait_for(upstream.come.wait(), 10)
            await asyncio.sleep(0.1)
            task.cancel()
            await asyncio.wait_for(upstream.gone.wait(), 10)
        assert upstream.open == 0

    asyncio.run(run())
    (call,) = kit.rows("call")
    assert call["ended"] == "gone"
    assert [row["error"] for row in kit.rows("attempt")] == ["cancelled"]


def test_rehearsal_streams_through_the_gateway_like_a_plain_call(kit: Any) -> None:
    async def run() -> None:
        from xspec.experiment.gateway_execution import open_gateway
        from xspec.experiment.gateway_spec import compile_gateway
        from xspec.spec.compose import compose
        from xspec.spec.config import validate_config

        config = validate_config(compose(["benchmark=external"]))
        compiled = await compile_gateway(config, kit.store, "fill")
        async with open_gateway(kit.store, compiled) as gateway, kit.client(gateway) as client:
            plain = await client.chat.completions.create(model="m", messages=kit.MESSAGES)
            chunks = await chunks_of(client, kit.MESSAGES)
            text = "".join(c.choices[0].delta.content or "" for c in chunks)
            assert text == plain.choices[0].message.content

    asyncio.run(run())
    assert [call["ended"] for call in kit.rows("call")] == ["answered", "answered"]


def test_a_gateway_whose_caller_is_cut_off_is_closed_in_order(kit: Any) -> None:
    """As by Ctrl-C in a generation, which asyncio makes a cancellation of."""

    async def run() -> None:
        from xspec.experiment.gateway_execution import open_gateway
        from xspec.experiment.gateway_spec import compile_gateway
        from xspec.spec.compose import compose
        from xspec.spec.config import validate_config

        compiled = await compile_gateway(validate_config(compose(["benchmark=external"])), kit.store, "fill")
        with pytest.raises(asyncio.CancelledError):
            async with open_gateway(kit.store, compiled):
                raise asyncio.CancelledError

    asyncio.run(run())
    assert [row["ended"] for row in kit.rows("closed")] == ["interrupted"]
