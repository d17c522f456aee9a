"""Which trial, step and conversation a call is recorded under, and which calls are somebody's retries."""

import asyncio
from typing import Any

import openai
import pytest

from xspec.gateway.conversations import Conversations, Seen

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
    """Of the calls that were not refused."""
    calls = [call for call in kit.rows("call") if call["ended"] != "refused"]
    return [(c["by"], c["run"], c["task"], c["step"], c["call"], c["again"]) for c in calls]


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
    refused = [call for call in kit.rows("call") if call["ended"] == "refused"]
    assert [(call["by"], call["status"]) for call in refused] == [("order", 404)] * 11
    assert "the spec has the runs 0 to 1" in refused[0]["why"]
    said = [[message["content"] for message in step["added"]] for step in kit.rows("step")]
    assert said == [["a", "a 0"], ["b", "b 1"], ["c", "c 2"]]
    assert {(row["run"], row["task"]) for row in kit.rows("attempt")} == {(1, "pay"), (0, "read")}


def test_without_named_tasks_any_name_will_do(kit: Any) -> None:
    async def run() -> None:
        async with kit.both(echo(kit)) as (_, _g, client):
            await ask(client, "a", extra_headers={"x-xspec-trial": "4/django__django-11099"})
            for wrong in ("5/a", "0/", "0/a b", "0/../x", "0/conversation-1"):
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


def said(role: str, text: str) -> dict[str, str]:
    return {"role": role, "content": text}


class Talk:
    """Requests that name no trial, and their answers, in an order of the test's own."""

    def __init__(self) -> None:
        self._conversations = Conversations()

    def ask(self, *messages: dict[str, str], fields: str = "", **how: bool) -> Seen:
        return self._conversations.see(None, "order", f"{messages} {fields}", messages, **how)

    def answer(self, seen: Seen, text: str | None = "same") -> None:
        self._conversations.over(seen, None if text is None else said("assistant", text))


def test_conversations_that_say_the_same_at_once_stay_apart() -> None:
    """As reruns of one task do at temperature 0."""
    talk = Talk()
    messages = [said("user", "task")]
    for step in range(3):
        seen = [talk.ask(*messages) for _ in range(5)]
        assert sorted(one.place.task for one in seen) == [f"conversation-{n}" for n in range(1, 6)]
        assert {(one.place.step, one.place.call, one.again) for one in seen} == {(step, 0, None)}
        for one in seen:
            talk.answer(one)
        messages += [said("assistant", "same"), said("user", f"more {step}")]


def test_a_rerun_goes_on_where_an_earlier_run_was_given_up() -> None:
    talk = Talk()
    for _ in range(2):
        talk.answer(talk.ask(said("user", "task")))
    later = talk.ask(said("user", "task"), said("assistant", "same"), said("user", "more"))
    assert later.place.task == "conversation-2"


def test_an_opening_goes_on_with_its_conversation_only_while_that_has_no_answer() -> None:
    talk = Talk()
    opening = said("user", "task")
    unanswered = talk.ask(opening)
    talk.answer(unanswered, None)
    again = talk.ask(opening, fields="temperature 1")
    assert (again.place.task, again.place.step, again.again) == ("conversation-1", 1, None)
    impatient = talk.ask(opening, fields="temperature 1", is_retry=True)
    assert (impatient.place.task, impatient.place.step, impatient.again) == ("conversation-1", 1, "retry")
    talk.answer(impatient)
    for n, fields in enumerate(("temperature 1", "temperature 0", "")):
        another = talk.ask(opening, fields=fields)
        assert (another.place.task, another.place.step, another.again) == (f"conversation-{n + 2}", 0, None)


def test_a_later_request_that_comes_again_stays_in_its_conversation() -> None:
    talk = Talk()
    first, other = talk.ask(said("user", "a")), talk.ask(said("user", "a"))
    talk.answer(first)
    later = [said("user", "a"), said("assistant", "same"), said("user", "b")]
    talk.answer(talk.ask(*later))
    repeated = talk.ask(*later)
    assert (repeated.place.task, repeated.place.step, repeated.again) == ("conversation-1", 1, "repeat")
    talk.answer(other)
    assert talk.ask(*later).place.task == "conversation-2"


def test_only_a_number_above_zero_is_a_client_s_retry(kit: Any) -> None:
    async def run() -> None:
        async with kit.both(echo(kit)) as (_, _g, client):
            for count in ("banana", "0", "00", "", "2"):
                await ask(client, count, extra_headers={"x-stainless-retry-count": count})

    asyncio.run(run())
    assert [again for *_, again in places(kit)] == [None, None, None, None, "retry"]


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
