"""The simulated model streams: the chunks add up to the plain reply, and faults break them off."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import openai
import pytest

from xspec.rehearsal.address import TrialAddress, trial_path
from xspec.rehearsal.simulator import Simulator

Member = Callable[..., dict[str, Any]]
Served = Callable[[dict[str, Any]], AbstractAsyncContextManager[tuple[Simulator, str, int]]]
TASK = "suite.task_6"


def client(key: str, port: int, execution: str = "e") -> openai.AsyncOpenAI:
    base = f"http://127.0.0.1:{port}{trial_path(TrialAddress(execution, key, 0, TASK))}"
    return openai.AsyncOpenAI(api_key="none", base_url=base, max_retries=0)


def test_chunks_add_up_to_the_plain_reply(
    served: Served, member: Member, tools: list[dict[str, Any]]
) -> None:
    async def run() -> None:
        async with served(member()) as (_, key, port), client(key, port) as sdk:
            asked: dict[str, Any] = {
                "model": "rehearsal-a",
                "messages": [{"role": "user", "content": "Do thing 6."}],
                "tools": tools,
            }
            plain = await sdk.chat.completions.create(**asked)
            stream = await sdk.chat.completions.create(
                **asked, stream=True, stream_options={"include_usage": True}
            )
            chunks = [chunk async for chunk in stream]
            assert len(chunks) > 3
            (call,) = plain.choices[0].message.tool_calls
            deltas = [d for c in chunks if c.choices for d in c.choices[0].delta.tool_calls or ()]
            assert deltas[0].id == call.id
            assert deltas[0].function.name == call.function.name
            assert "".join(d.function.arguments for d in deltas) == call.function.arguments
            assert chunks[-2].choices[0].finish_reason == "tool_calls"
            assert chunks[-1].usage.completion_tokens == plain.usage.completion_tokens
            assert {c.system_fingerprint for c in chunks} == {plain.system_fingerprint}
            without = await sdk.chat.completions.create(**asked, stream=True)
            assert [chunk.usage async for chunk in without if chunk.usage] == []

    asyncio.run(run())


@pytest.mark.parametrize("fault", ["truncated_json", "reset"])
def test_faults_break_streams_off(
    served: Served, member: Member, tools: list[dict[str, Any]], fault: str
) -> None:
    async def run() -> None:
        async with served(member(**{fault: 1.0})) as (simulator, key, port):
            ends = []
            for n in range(12):
                async with client(key, port, execution=f"e{n}") as sdk:
                    try:
                        stream = await sdk.chat.completions.create(
                            model="rehearsal-a",
                            messages=[{"role": "user", "content": "Do thing 6."}],
                            tools=tools,
                            stream=True,
                        )
                        finishes = [c.choices[0].finish_reason async for c in stream]
                        ends.append("whole" if "tool_calls" in finishes else "cut")
                    except Exception as error:
                        ends.append(type(error).__name__)
            statuses = simulator.tally.plain()["statuses"]
            if fault == "reset":
                assert set(ends) == {"APIConnectionError"}
            else:
                assert "cut" in ends or "JSONDecodeError" in ends
                assert sum(statuses.get(end, 0) for end in ("truncated", "closed_early")) == 12

    asyncio.run(run())
