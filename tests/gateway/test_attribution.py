"""Which trial, step and conversation a call is recorded under, and which calls are somebody's retries."""

import asyncio
from typing import Any

import openai
import pytest

MODEL = "small-2026-01-01"


async def ask(client: openai.AsyncOpenAI, *said: str, **more: Any) -> str:
    """Asks with a history of alternating messages; what came back."""
    roles = ("user", "assistant")
    messages: Any = [{"role": roles[i % 2], "content": text} for i, text in enumerate(said)]
    reply = await client.chat.completions.create(model=MODEL, messages=messages, **more)
    return reply.choices[0].message.content or ""


def echo(kit: Any) -> Any:
    """Answers with the last message and the number of the request."""
    return lambda n, asked: kit.Reply(kit.completion(f"{asked.json['messages'][-1]['content']} {n}"))


def places(kit: Any) -> list[tuple[Any, ...]]:
    return [(c["by"], c["run"], c["task"], c["step"], c["call"], c["again"]) for c in kit.rows("call")]


def test_the_path_or_a_header_names_the_trial(kit: Any) -> None:
    async def run() -> None:
        async with kit.both(echo(kit), "benchmark.tasks=[pay, read]", "k=2") as (_, gateway, client):
            base = gateway.base_url.removesuffix("/v1")
            async with kit.client(gateway, base_url=f"{base}/t/1/pay/v1") as trial:
                first = await ask(trial, "a")
                await ask(trial, "a", first, "b")
            await ask(client, "c", extra_headers={"x-xspec-trial": "0/read"})
            for wrong in ("2/pay", "0/other", "x/pay", "pay", "-1/pay", "0/pay/x", "00/pay", "01/pay"):
                with pytest.raises(openai.NotFoundError, match="xspec gateway"):
                    await ask(client, "d", extra_headers={"x-xspec-trial": wrong})
            for wrong in ("00", "01", "1_"):
                async with kit.client(gateway, base_url=f"{base}/t/{wrong}/pay/v1") as trial:
                    with pytest.raises(openai.NotFoundError, match="there is no run"):
                        await ask(trial, "e")

    asyncio.run(run())
    assert places(kit) == [
        ("path", 1, "pay", 0, 0, None),
        ("path", 1, "pay", 1, 0, None),
        ("header", 0, "read", 0, 0, None),
    ]
    said = [[message["content"] for message in step["added"]] for step in kit.rows("step")]
    assert said == [["a", "a 0"], ["b", "b 1"], ["c", "c 2"]]
    assert {(row["run"], row["task"]) for row in kit.rows("attempt")} == {(1, "pay"), (0, "read")}


def test_without_named_tasks_any_name_will_do(kit: Any) -> None:
    async def run() -> None:
        async with kit.both(echo(kit)) as (_, _g, client):
            await ask(client, "a", extra_headers={"x-xspec-trial": "4/django__django-11099"})
            for wrong in ("5/a", "0/", "0/a b", "0/../x"):
                with pytest.raises(openai.NotFoundError):
                    await ask(client, "a", extra_headers={"x-xspec-trial": wrong})

    asyncio.run(run())
    assert places(kit) == [("header", 4, "django__django-11099", 0, 0, None)]


def test_conversations_are_told_apart_by_what_they_say(kit: Any) -> None:
    """Three interleaved conversations; the first and the third begin with the same words."""

    async def run() -> None:
        async with kit.both(echo(kit)) as (_, _g, client):
            first = await ask(client, "a")
            second = await ask(client, "b")
            await ask(client, "a", first, "more")
            third = await ask(client, "a")
            await ask(client, "b", second, "more")
            await ask(client, "a", third, "more")
            await ask(client, "a", "what the model never said", "more")

    asyncio.run(run())
    assert [(task, step) for _, _, task, step, _, _ in places(kit)] == [
        ("conversation-1", 0),
        ("conversation-2", 0),
        ("conversation-1", 1),
        ("conversation-3", 0),
        ("conversation-2", 1),
        ("conversation-3", 1),
        ("conversation-3", 2),
    ]
    steps = [[message["content"] for message in step["added"]] for step in kit.rows("step")]
    assert steps[2] == ["more", "more 2"], "a message is stored once, in the step that added it"


def test_the_same_again_is_a_retry_after_a_failure_and_a_repeat_after_an_answer(kit: Any) -> None:
    def answer(n: int, asked: Any) -> Any:
        return kit.Reply({"error": {"message": "no"}}, 500) if n < 3 else echo(kit)(n, asked)

    async def run() -> None:
        async with kit.both(answer, "k=1") as (_, _g, client):
            trial = {"extra_headers": {"x-xspec-trial": "0/t"}}
            with pytest.raises(openai.BadRequestError, match="no usable reply after 3 attempts"):
                await ask(client, "a", **trial)
            await ask(client, "a", **trial)
            await ask(client, "a", **trial)
            await ask(client, "b", extra_headers={"x-stainless-retry-count": "1", "x-xspec-trial": "0/t"})

    asyncio.run(run())
    assert [place[3:] for place in places(kit)] == [
        (0, 0, None),
        (0, 1, "retry"),
        (0, 2, "repeat"),
        (1, 0, "retry"),
    ]
    calls = kit.rows("call")
    assert [call["ended"] for call in calls] == ["failed", "answered", "answered", "answered"]
    assert [message["content"] for message in calls[2]["others"]] == ["a 4"], "another sample of the step"
    assert len(kit.rows("step")) == 2
    attempts = [(row["step"], row["call"], row["attempt"]) for row in kit.rows("attempt")]
    assert len(set(attempts)) == len(attempts) == 6


def test_a_client_that_times_out_and_asks_again_is_seen_to(kit: Any) -> None:
    """The real SDK, whose own limit is shorter than the route's: its retries must not hide."""
    calm = asyncio.Event()

    def answer(n: int, asked: Any) -> Any:
        return kit.Reply(pieces=[calm.wait]) if n == 0 else kit.Reply()

    async def run() -> None:
        async with kit.both(answer) as (upstream, gateway, _):
            async with kit.client(gateway, max_retries=1, timeout=0.5) as client:
                await ask(client, "a")
            assert len(upstream.asked) == 2

    asyncio.run(run())
    first, second = kit.rows("call")
    assert (first["ended"], second["ended"]) == ("gone", "answered")
    assert (second["again"], second["task"], second["step"], second["call"]) == (
        "retry",
        "conversation-1",
        0,
        1,
    )


def test_200_conversations_at_once(kit: Any) -> None:
    """Each keeps its own thread; the ledger has every row, once; the upstream saw as many at once as are allowed."""
    most = 0

    async def run() -> None:
        nonlocal most
        waiting = 0
        all_there = asyncio.Event()

        def answer(n: int, asked: Any) -> Any:
            async def together() -> None:
                nonlocal waiting
                waiting += 1
                if waiting == 200:
                    all_there.set()
                await all_there.wait()

            return kit.Reply(pieces=[together, *kit.stream_of(asked.json["messages"][-1]["content"])])

        async with kit.both(answer) as (upstream, _g, client):

            async def talk(number: int) -> None:
                for turn in range(2):
                    said = [str(number)] if turn == 0 else [str(number), str(number), f"{number} more"]
                    roles = ("user", "assistant")
                    messages: Any = [{"role": roles[i % 2], "content": text} for i, text in enumerate(said)]
                    stream = await client.chat.completions.create(model=MODEL, messages=messages, stream=True)
                    text = "".join([c.choices[0].delta.content or "" async for c in stream if c.choices])
                    assert text == said[-1]

            await asyncio.gather(*(talk(number) for number in range(200)))
            assert len(upstream.asked) == 400

    asyncio.run(run())
    calls = kit.rows("call")
    assert len(calls) == 400
    assert {call["ended"] for call in calls} == {"answered"}
    assert len({call["task"] for call in calls}) == 200
    assert max(row["concurrency"] for row in kit.rows("attempt_started")) == 200
    assert len(kit.rows("attempt_started")) == len(kit.rows("attempt")) == 400
