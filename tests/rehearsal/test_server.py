"""The simulated model on a real socket: every fault as the wire shows it, and the counts of it."""

import asyncio
import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import openai
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from xspec.rehearsal.address import TrialAddress, parse_trial, trial_path
from xspec.rehearsal.attempts import Attempts
from xspec.rehearsal.replies import FINGERPRINT
from xspec.rehearsal.simulator import Simulator

Member = Callable[..., dict[str, Any]]
Served = Callable[[dict[str, Any]], AbstractAsyncContextManager[tuple[Simulator, str, int]]]
Messages = list[dict[str, Any]]
TASK = "suite.task_6"


async def exchange(port: int, data: bytes) -> bytes:
    """Send and read until the server closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(data)
        await writer.drain()
        return await asyncio.wait_for(reader.read(), 10)
    finally:
        writer.close()


async def pour(writer: asyncio.StreamWriter) -> None:
    """Send for as long as the server lets it."""
    while True:
        writer.write(b"x" * 1_000_000)
        await writer.drain()


def post(path: str, body: bytes, *, close: bool = True) -> bytes:
    connection = "close" if close else "keep-alive"
    head = (
        f"POST {path} HTTP/1.1\r\nhost: x\r\nconnection: {connection}\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def body_of(reply: bytes) -> Any:
    return json.loads(reply.partition(b"\r\n\r\n")[2])


def completions(key: str, execution: str = "e", run: int = 0, task: str = TASK) -> str:
    return trial_path(TrialAddress(execution, key, run, task)) + "/chat/completions"


def request(tools: Messages, messages: Messages | None = None, **more: Any) -> bytes:
    messages = messages or [{"role": "user", "content": "Do thing 6."}]
    return json.dumps({"model": "rehearsal-a", "messages": messages, "tools": tools, **more}).encode()


@pytest.mark.parametrize("task", [TASK, "odd/task ä%", "a b"])
def test_trial_paths_round_trip(task: str) -> None:
    trial = TrialAddress("ex/1", "0123456789abcdef", 4, task)
    assert parse_trial(trial_path(trial) + "/chat/completions") == trial
    assert parse_trial("/t/e/k/x/task/v1/chat/completions") is None


def test_openai_client_plays_a_whole_trial(served: Served, member: Member, tools: Messages) -> None:
    async def run() -> None:
        async with (
            served(member()) as (simulator, key, port),
            openai.AsyncOpenAI(
                api_key="none",
                base_url=f"http://127.0.0.1:{port}" + trial_path(TrialAddress("e", key, 0, TASK)),
                max_retries=0,
                http_client=openai.DefaultAsyncHttpxClient(trust_env=False),
            ) as client,
        ):
            messages: Any = [{"role": "user", "content": "Do thing 6."}]
            names = []
            while True:
                reply: Any = await client.chat.completions.create(
                    model="rehearsal-a", messages=messages, tools=tools, temperature=0
                )
                assert reply.model == "rehearsal-a"
                assert reply.system_fingerprint == FINGERPRINT
                assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens
                message = reply.choices[0].message
                messages.append(message.model_dump(exclude_none=True))
                if not message.tool_calls:
                    break
                assert reply.choices[0].finish_reason == "tool_calls"
                names.append(message.tool_calls[0].function.name)
                messages.append({"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "ok"})
            assert message.content == "done 6"
            assert names == [call.name for call in simulator._config.tasks[TASK].calls]
            assert [m.id for m in (await client.models.list()).data] == ["rehearsal-a"]
            assert simulator.tally.plain()["requests"] == len(names) + 1

    asyncio.run(run())


def test_too_many_requests(served: Served, member: Member, tools: Messages) -> None:
    async def run() -> None:
        async with served(member(too_many_requests=1.0)) as (simulator, key, port):
            reply = await exchange(port, post(completions(key), request(tools)))
            assert reply.startswith(b"HTTP/1.1 429 ")
            assert b"\r\nretry-after: 0.25\r\n" in reply
            assert b"\r\nretry-after-ms: 250\r\n" in reply
            assert body_of(reply)["error"]["code"] == "rate_limit_exceeded"
            assert simulator.tally.plain()["statuses"] == {"429": 1}

    asyncio.run(run())


def test_server_errors_vary(served: Served, member: Member, tools: Messages) -> None:
    async def run() -> None:
        async with served(member(server_error=1.0)) as (simulator, key, port):
            for _ in range(20):
                reply = await exchange(port, post(completions(key), request(tools)))
                assert body_of(reply)["error"]["code"] == "server_error"
            statuses = simulator.tally.plain()["statuses"]
            assert set(statuses) == {"500", "502", "503"}
            assert sum(statuses.values()) == 20

    asyncio.run(run())


def test_a_stall_answers_late(served: Served, member: Member, tools: Messages) -> None:
    async def run() -> None:
        async with served(member(stall=1.0)) as (simulator, key, port):
            loop = asyncio.get_running_loop()
            begun = loop.time()
            reply = await exchange(port, post(completions(key), request(tools)))
            assert loop.time() - begun >= 0.29
            assert reply.startswith(b"HTTP/1.1 200 ")
            assert body_of(reply)["model"] == "rehearsal-a"
            # A client that leaves during a stall does no harm.
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(post(completions(key), request(tools)))
            await writer.drain()
            await asyncio.sleep(0.05)
            writer.close()
            await asyncio.sleep(0.4)
            assert simulator.tally.plain()["statuses"] == {"stall": 2}

    asyncio.run(run())


def test_a_reset_is_a_tcp_reset(served: Served, member: Member, tools: Messages) -> None:
    async def run() -> None:
        async with served(member(reset=1.0)) as (simulator, key, port):
            with pytest.raises(ConnectionResetError):
                await exchange(port, post(completions(key), request(tools)))
            assert simulator.tally.plain()["statuses"] == {"reset": 1}

    asyncio.run(run())


def test_truncated_json_is_cut_or_closed_early(served: Served, member: Member, tools: Messages) -> None:
    async def run() -> None:
        async with served(member(truncated_json=1.0)) as (simulator, key, port):
            seen = {"truncated": 0, "closed_early": 0}
            for _ in range(24):
                reply = await exchange(port, post(completions(key), request(tools)))
                head, _, body = reply.partition(b"\r\n\r\n")
                assert head.startswith(b"HTTP/1.1 200 ")
                with pytest.raises(ValueError, match=r"Expecting|Unterminated|delimiter|value"):
                    json.loads(body)
                length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
                seen["truncated" if length == len(body) else "closed_early"] += 1
            assert seen == simulator.tally.plain()["statuses"]
            assert min(seen.values()) > 0

    asyncio.run(run())


def test_another_model_and_garbled_arguments(served: Served, member: Member, tools: Messages) -> None:
    async def run() -> None:
        async with served(member(other_model=1.0, garbled_arguments=1.0)) as (simulator, key, port):
            reply = body_of(await exchange(port, post(completions(key), request(tools))))
            assert reply["model"] == "rehearsal-a-drifted"
            with pytest.raises(ValueError, match=r"Expecting|Unterminated|delimiter|value"):
                json.loads(reply["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"])
            plain = simulator.tally.plain()
            assert plain["statuses"] == {"200": 1}
            assert plain["faults"] == {"other_model": 1, "garbled_arguments": 1}

    asyncio.run(run())


def test_latency_delays_good_replies_and_keeps_pipelined_order(
    served: Served, member: Member, tools: Messages
) -> None:
    async def run() -> None:
        async with served(member(latency_s=0.1)) as (_, key, port):
            first = post(completions(key, run=0), request(tools), close=False)
            second = post(completions(key, run=1), request(tools))
            begun = asyncio.get_running_loop().time()
            replies = await exchange(port, first + second)
            assert asyncio.get_running_loop().time() - begun >= 0.19
            assert replies.count(b"HTTP/1.1 200 ") == 2

    asyncio.run(run())


def test_stats_add_up_to_what_was_sent(served: Served, member: Member, tools: Messages) -> None:
    faulty = {"too_many_requests": 0.2, "server_error": 0.2, "reset": 0.2, "truncated_json": 0.2}

    async def run() -> None:
        async with served(member(**faulty)) as (_, key, port):
            for number in range(60):
                try:
                    path = completions(key, f"e{number % 2}", run=number)
                    await exchange(port, post(path, request(tools)))
                except ConnectionResetError:
                    pass
            await exchange(port, post(completions("nobody"), request(tools)))
            get = b"GET /stats HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
            await exchange(port, get.replace(b"/stats", b"/nowhere"))
            stats = body_of(await exchange(port, get))
            assert stats["requests"] == sum(stats["statuses"].values()) == 61
            executions = stats["executions"]
            assert sum(executions["e1"][key].values()) == 30
            assert sum(executions["e0"][key].values()) == 30
            assert executions["e"] == {"nobody": {"404": 1}}
            assert stats["others"] == {"404": 1}
            assert {"429", "reset", "truncated", "200"} <= set(stats["statuses"])

    asyncio.run(run())


def test_replies_are_the_same_again(served: Served, member: Member, tools: Messages) -> None:
    async def replies() -> list[bytes]:
        async with served(member(too_many_requests=0.3, server_error=0.3)) as (_, key, port):
            paths = [completions(key, run=number // 3) for number in range(30)]
            return [await exchange(port, post(path, request(tools))) for path in paths]

    assert asyncio.run(replies()) == asyncio.run(replies())


def test_attempts_count_retries_and_begin_again_with_a_trial() -> None:
    attempts = Attempts()
    trial = ("e", 0, "t")
    assert [attempts.next(*trial, 0) for _ in range(3)] == [0, 1, 2]
    assert attempts.next("e", 1, "t", 0) == 0
    assert [attempts.next(*trial, 1) for _ in range(2)] == [0, 1]
    assert attempts.next(*trial, 0) == 0
    attempts.answered(*trial)
    assert attempts.next(*trial, 0) == 0


def test_the_plain_path_knows_tasks_by_their_instruction(
    served: Served, member: Member, tools: Messages
) -> None:
    async def run() -> None:
        async with served(member()) as (simulator, key, port):
            known = body_of(await exchange(port, post("/v1/chat/completions", request(tools))))
            assert known["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "get_balance"
            hello: Messages = [{"role": "user", "content": [{"type": "text", "text": "Hello"}]}]
            for unknown in (request(tools, hello), request([], hello), request([])):
                reply = body_of(await exchange(port, post("/v1/chat/completions?x=1", unknown)))
                assert "SIMULATED MODEL" in reply["choices"][0]["message"]["content"]
            assert simulator.tally.plain()["executions"] == {"curl": {key: {"200": 2}}}

    asyncio.run(run())


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"[]", 400),
        (b"{", 400),
        (b'{"model":"rehearsal-a"}', 400),
        (b'{"model":"rehearsal-a","messages":[]}', 400),
        (b'{"model":3,"messages":[1]}', 400),
        (b'{"model":"gpt","messages":[1]}', 404),
        (b'{"model":"rehearsal-a","messages":[1],"tools":3}', 200),
        (b'{"model":"rehearsal-a","messages":[{"role":"assistant","tool_calls":5}],"tools":[[]]}', 200),
    ],
)
def test_wrong_requests_are_told_so(served: Served, member: Member, body: bytes, status: int) -> None:
    async def run() -> None:
        async with served(member()) as (simulator, key, port):
            reply = await exchange(port, post(completions(key), body))
            assert reply.startswith(f"HTTP/1.1 {status} ".encode())
            assert simulator.tally.plain()["statuses"] == {str(status): 1}

    asyncio.run(run())


def test_wrong_methods_tasks_and_paths(served: Served, member: Member, tools: Messages) -> None:
    async def run() -> None:
        async with served(member()) as (_, key, port):
            body = request(tools)
            assert (await exchange(port, post("/stats", b"")))[:12] == b"HTTP/1.1 405"
            assert (await exchange(port, post("/other", body)))[:12] == b"HTTP/1.1 404"
            assert (await exchange(port, post(completions(key, task="no"), body)))[:12] == b"HTTP/1.1 404"
            get = f"GET {completions(key)} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
            assert (await exchange(port, get.encode()))[:12] == b"HTTP/1.1 405"
            head = b"HEAD /v1/models HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
            assert (await exchange(port, head)).endswith(b"\r\n\r\n")

    asyncio.run(run())


def test_large_bodies_and_100_continue(served: Served, member: Member, tools: Messages) -> None:
    async def run() -> None:
        async with served(member()) as (_, key, port):
            large = request(tools, [{"role": "user", "content": "x" * 20_000_000}])
            reply = await exchange(port, post(completions(key), large))
            assert body_of(reply)["usage"]["prompt_tokens"] > 5_000_000

            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            head, _, body = post(completions(key), request(tools)).partition(b"\r\n\r\n")
            writer.write(head + b"\r\nexpect: 100-continue\r\n\r\n")
            assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 \r\n\r\n"
            writer.write(body)
            assert (await reader.read()).startswith(b"HTTP/1.1 200 ")
            writer.close()

            too_large = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000000\r\n\r\n"
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(too_large)
            with pytest.raises(ConnectionError):
                await pour(writer)
            writer.close()

    asyncio.run(run())


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200), st.booleans())
def test_malformed_requests_get_400_and_the_server_lives_on(
    served: Served, member: Member, noise: bytes, as_body: bool
) -> None:
    async def run() -> None:
        async with served(member()) as (_, key, port):
            data = post(completions(key), noise) if as_body else noise + b"\x00 \r\n\r\n"
            reply = await exchange(port, data)
            assert reply.startswith(b"HTTP/1.1 400 ")
            get = b"GET /stats HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
            assert (await exchange(port, get)).startswith(b"HTTP/1.1 200 ")

    asyncio.run(run())
