"""Plain calls through the gateway: what goes out, what comes back, what is written down."""

import asyncio
from typing import Any

import openai
import pytest

from xspec.report.gateway import gateway_figures, gateway_lines


def test_a_call_is_brought_into_line_and_recorded(kit: Any) -> None:
    async def run() -> None:
        async with kit.both(lambda n, asked: kit.Reply(kit.completion("hi"))) as (upstream, _gateway, client):
            reply = await client.chat.completions.create(
                model="another", messages=kit.MESSAGES, temperature=0.7, presence_penalty=0.5
            )
            assert reply.choices[0].message.content == "hi"
            (asked,) = upstream.asked
            assert asked.headers["authorization"] == f"Bearer {kit.KEY}"
            assert asked.json == {
                "messages": kit.MESSAGES,
                "model": "small-2026-01-01",
                "temperature": 0,
                "top_p": 1,
                "seed": 42,
                "max_tokens": 8192,
            }

    asyncio.run(run())
    (call,) = kit.rows("call")
    changes = {change.pop("field"): change for change in call["changes"]}
    assert changes == {
        "model": {"asked": "another", "sent": "small-2026-01-01"},
        "temperature": {"asked": 0.7, "sent": 0},
        "presence_penalty": {"asked": 0.5},
        "top_p": {"sent": 1},
        "seed": {"sent": 42},
        "max_tokens": {"sent": 8192},
    }
    assert (call["ended"], call["status"], call["by"], call["task"]) == (
        "answered",
        200,
        "order",
        "conversation-1",
    )
    (step,) = kit.rows("step")
    assert step["added"] == [*kit.MESSAGES, {"role": "assistant", "content": "hi"}]
    (started, ended) = kit.rows("attempt_started", "attempt")
    assert started["request_digest"] == step["request_digest"]
    assert (ended["prompt_tokens"], ended["completion_tokens"]) == (11, 3)


def test_a_contradiction_is_refused_and_the_client_stops(kit: Any) -> None:
    async def run() -> None:
        async with kit.both(lambda n, asked: kit.Reply(), enforce="refuse") as (upstream, _gateway, client):
            with pytest.raises(openai.BadRequestError) as refused:
                await client.chat.completions.create(
                    model="small-2026-01-01", messages=kit.MESSAGES, temperature=0.5
                )
            assert refused.value.param == "temperature"
            assert "0.5" in str(refused.value)
            assert upstream.asked == []
            await client.chat.completions.create(model="small-2026-01-01", messages=kit.MESSAGES, seed=42)
            assert upstream.asked[0].json["temperature"] == 0

    asyncio.run(run())
    refused, answered = kit.rows("call")
    assert (refused["ended"], refused["status"], answered["ended"]) == ("refused", 400, "answered")
    assert refused["changes"] == [{"field": "temperature", "asked": 0.5, "sent": 0}]
    assert {change["field"] for change in answered["changes"]} == {"temperature", "top_p", "max_tokens"}
    assert kit.rows("attempt_started")[0]["step"] == 1, "nothing was begun for the first"


def test_the_report_says_what_became_of_each_contradiction(kit: Any) -> None:
    """A model that no member has is refused like anything else, and what was refused had nothing filled in."""

    async def run() -> None:
        async with kit.both(lambda n, asked: kit.Reply(), enforce="refuse") as (_upstream, gateway, _client):
            body = {"model": "another", "messages": kit.MESSAGES, "temperature": None}
            refused = await kit.post(gateway, body)
            assert "'" not in refused.json()["error"]["message"], "values as JSON has them"

    asyncio.run(run())
    found = gateway_figures(kit.store, kit.execution())
    lines = "\n".join(gateway_lines(found))
    assert (
        'model contradicted the spec in 1 call, refused: asked "another", frozen "small-2026-01-01"' in lines
    )
    assert "brought into line" not in lines
    assert "filled in" not in lines


def test_the_report_shows_values_as_the_harness_wrote_them(kit: Any) -> None:
    """JSON and not Python; what was not asked is said so; a name that is no plain word is quoted, and kept short."""

    async def run() -> None:
        async with kit.both(lambda n, asked: kit.Reply(), "sampling.seed=null") as (
            _upstream,
            gateway,
            _client,
        ):
            body = {"model": "an\u001bother", "messages": kit.MESSAGES, "temperature": "0", "top_p": True}
            await kit.post(gateway, {**body, "seed": {"a": None}, "api_base": "http://x", "\u001b[31m": 1})

    asyncio.run(run())
    lines = list(gateway_lines(gateway_figures(kit.store, kit.execution())))
    ways = {line.partition(" contradicted")[0]: line.partition("into line: ")[2] for line in lines}
    assert ways["model"] == 'asked "an\\u001bother", sent "small-2026-01-01"'
    assert ways["temperature"] == 'asked "0", sent 0.0'
    assert ways["top_p"] == "asked true, sent 1.0"
    assert ways["seed"] == 'asked {"a": null}, not sent'
    assert ways["api_base"] == "asked (not shown), not sent"
    assert '"\\u001b[31m"' in ways
    assert "filled in where the harness asked for nothing: 1 max_tokens" in lines


def test_a_client_that_sends_null_is_served_and_it_is_recorded(kit: Any) -> None:
    async def run() -> None:
        async with kit.both(lambda n, asked: kit.Reply(), enforce="refuse") as (upstream, _gateway, client):
            await client.chat.completions.create(
                model="small-2026-01-01", messages=kit.MESSAGES, temperature=None, presence_penalty=None
            )
            assert upstream.asked[0].json["temperature"] == 0
            assert "presence_penalty" not in upstream.asked[0].json

    asyncio.run(run())
    (call,) = kit.rows("call")
    assert {"field": "temperature", "asked": None, "sent": 0} in call["changes"]
    assert {"field": "presence_penalty", "asked": None} in call["changes"]
    lines = "\n".join(gateway_lines(gateway_figures(kit.store, kit.execution())))
    assert "contradicted" not in lines
    assert "asked for nothing: 1 max_tokens, 1 seed, 1 temperature, 1 top_p" in lines


@pytest.mark.parametrize("token", ["wrong", "", "sk-xspec-" + "0" * 48])
def test_without_the_token_nothing_is_answered(kit: Any, token: str) -> None:
    async def run() -> None:
        async with kit.both(lambda n, asked: kit.Reply()) as (upstream, gateway, _):
            async with openai.AsyncOpenAI(api_key=token or "-", base_url=gateway.base_url) as client:
                with pytest.raises(openai.AuthenticationError):
                    await client.models.list()
                with pytest.raises(openai.AuthenticationError):
                    await client.chat.completions.create(model="m", messages=kit.MESSAGES)
            assert upstream.asked == []

    asyncio.run(run())
    assert kit.rows("call") == []


def test_the_frozen_models_are_listed(kit: Any) -> None:
    async def run() -> None:
        async with kit.both(lambda n, asked: kit.Reply()) as (_, _gateway, client):
            assert [model.id async for model in client.models.list()] == ["small-2026-01-01"]

    asyncio.run(run())


def test_a_frozen_model_is_found_by_its_name_and_no_other(kit: Any) -> None:
    """A name may have slashes, and the path may name a trial."""

    async def run() -> None:
        named = "provider.model=maker/small"
        async with kit.both(lambda n, asked: kit.Reply(), named) as (upstream, gateway, client):
            assert (await client.models.retrieve("maker/small")).id == "maker/small"
            base = gateway.base_url.removesuffix("/v1")
            async with kit.client(gateway, base_url=f"{base}/t/0/a/v1") as trial:
                assert (await trial.models.retrieve("maker/small")).id == "maker/small"
            for other in ("small", "maker/small/x", "maker"):
                with pytest.raises(openai.NotFoundError) as refused:
                    await client.models.retrieve(other)
                assert (refused.value.code, refused.value.param) == ("model_not_found", "model")
                assert other in refused.value.message
            assert (await kit.post(gateway, b"", "/models/maker/small")).status_code == 405
            assert upstream.asked == []

    asyncio.run(run())


def test_a_floating_route_puts_in_whichever_model_serves(kit: Any) -> None:
    pool = "provider.pool=[{name: other, model: other-2026-01-01}]"

    async def run() -> None:
        answer = lambda n, asked: kit.Reply(kit.completion(model=asked.json["model"]))  # noqa: E731
        async with kit.both(answer, "route=floating", pool, enforce="refuse") as (upstream, _g, client):
            for number in range(12):
                asked = [{"role": "user", "content": f"{number}"}]
                await client.chat.completions.create(model="other-2026-01-01", messages=asked)
            assert {a.json["model"] for a in upstream.asked} == {"small-2026-01-01", "other-2026-01-01"}
            with pytest.raises(openai.BadRequestError, match='model is "third"'):
                await client.chat.completions.create(model="third", messages=kit.MESSAGES)

    asyncio.run(run())


def test_the_report_tells_what_came_through(kit: Any) -> None:
    from xspec.report.build import build_report
    from xspec.report.load import load_gateways, load_records
    from xspec.report.markdown import report_markdown
    from xspec.report.table import report_text

    async def run() -> None:
        answer = lambda n, asked: kit.Reply({"error": {}}, 500) if n == 0 else kit.Reply()  # noqa: E731
        async with kit.both(answer) as (_, _g, client):
            for temperature in (0.5, 0.5, 0):
                await client.chat.completions.create(
                    model="small-2026-01-01",
                    messages=kit.MESSAGES,
                    temperature=temperature,
                    extra_headers={"x-xspec-trial": "0/t"},
                    response_format={"type": "text"},
                )

    asyncio.run(run())
    assert load_records(kit.store) == []
    report = build_report([], gateways=load_gateways(kit.store))
    for text in (report_text(report, 400), report_markdown(report)):
        assert "3 calls, 3 answered" in text
        assert "4 attempts (1 retry of the spec's policy), 33 prompt and 9 completion tokens" in text
        assert "faults: 1 server_error" in text
        assert "1 call asked again after an answer" in text
        assert "3 calls named their trial: 1 trial" in text
        assert "temperature contradicted the spec in 2 calls, brought into line: asked 0.5, sent 0.0" in text
        assert "observed and recorded, not frozen; likewise response_format" in text
