"""What a harness is told when a call cannot be served: once, in a status that makes the real client stop."""

import asyncio
from typing import Any

import openai
import pytest


async def ask(client: openai.AsyncOpenAI, messages: Any) -> Any:
    return await client.chat.completions.create(model="m", messages=messages)


FAULTS = {
    "server errors": (500, {"error": {"message": "boom"}}, 3, "failed", "server_error"),
    "no JSON": (200, b"<html>", 3, "failed", "malformed_reply"),
    "a wrong key": (401, {"error": {"message": "bad key"}}, 1, "stopped", "unauthorized"),
    "no credit": (402, {"error": {"message": "top up"}}, 1, "stopped", "payment_required"),
    "no model": (
        503,
        {"error": {"message": "no", "code": "model_not_found"}},
        1,
        "stopped",
        "model_not_found",
    ),
    "no quota": (
        429,
        {"error": {"message": "no", "code": "insufficient_quota"}},
        1,
        "stopped",
        "insufficient_quota",
    ),
}


@pytest.mark.parametrize(("status", "body", "attempts", "ended", "code"), FAULTS.values(), ids=list(FAULTS))
def test_the_client_stops_at_once(
    kit: Any, status: int, body: Any, attempts: int, ended: str, code: str
) -> None:
    async def run() -> None:
        async with kit.both(lambda n, asked: kit.Reply(body, status)) as (upstream, gateway, client):
            assert client.max_retries == 2
            with pytest.raises(openai.BadRequestError) as refused:
                await ask(client, kit.MESSAGES)
            assert refused.value.code == code
            assert len(upstream.asked) == attempts, "the spec's own retries and no others"
            if ended == "stopped":
                with pytest.raises(openai.BadRequestError, match="stopped before this call"):
                    await ask(client, [{"role": "user", "content": "another"}])
                assert len(upstream.asked) == attempts
                assert gateway.stopped is not None

    asyncio.run(run())
    calls = kit.rows("call")
    assert [(call["ended"], call["status"]) for call in calls] == [(ended, 400)] * len(calls)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, {"message": "maximum context length is 8", "code": "context_length_exceeded", "type": "x"}),
        (400, {"message": "tools[0] is no tool", "code": "invalid", "param": "tools[0]", "type": "x"}),
        (413, {"message": "too large", "code": "request_too_large", "type": "x"}),
        (422, {"message": "unprocessable", "code": "y", "type": "x"}),
    ],
)
def test_what_is_the_harness_s_own_is_passed_on_as_it_came(kit: Any, status: int, error: Any) -> None:
    """Also at first: a bad request says something about the harness, and nothing about the route."""

    async def run() -> None:
        answer = lambda n, asked: kit.Reply({"error": error}, status) if n == 0 else kit.Reply()  # noqa: E731
        async with kit.both(answer) as (_, _g, client):
            with pytest.raises(openai.APIStatusError) as refused:
                await ask(client, kit.MESSAGES)
            assert refused.value.status_code == status
            assert refused.value.body == error
            await ask(client, kit.MESSAGES)

    asyncio.run(run())
    assert [call["ended"] for call in kit.rows("call")] == ["failed", "answered"]


def test_a_spec_that_was_edited_stops_every_call(kit: Any) -> None:
    async def run() -> None:
        async with kit.both(lambda n, asked: kit.Reply()) as (upstream, gateway, client):
            path = kit.store.spec_path(gateway.spec.id)
            path.write_bytes(path.read_bytes().replace(b'"temperature":0', b'"temperature":1'))
            with pytest.raises(openai.BadRequestError, match="spec drift"):
                await ask(client, kit.MESSAGES)
            assert upstream.asked == []

    asyncio.run(run())
    assert kit.rows("call")[0]["ended"] == "stopped"


def test_a_drifted_reply_is_passed_on_and_recorded(kit: Any) -> None:
    async def run() -> None:
        answer = lambda n, asked: kit.Reply(kit.completion(model="m-2" if n else "small-2026-01-01"))  # noqa: E731
        async with kit.both(answer) as (_, _g, client):
            for word in ("a", "b"):
                await ask(client, [{"role": "user", "content": word}])

    asyncio.run(run())
    first, second = kit.rows("call")
    assert first["drift"] == []
    assert second["drift"] == ["served_model: small-2026-01-01 -> m-2"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/chat/completions", 405),
        ("POST", "/v1/models", 405),
        ("POST", "/v1/embeddings", 404),
        ("POST", "/v1/v1/chat/completions", 404),
        ("GET", "/", 404),
    ],
)
def test_other_paths_and_methods(kit: Any, method: str, path: str, status: int) -> None:
    import httpx2

    async def run() -> None:
        async with kit.both(lambda n, asked: kit.Reply()) as (_, gateway, _c):
            url = gateway.base_url.removesuffix("/v1") + path
            async with httpx2.AsyncClient(trust_env=False) as http:
                headers = {"authorization": f"Bearer {gateway.token}"}
                answer = await http.request(method, url, headers=headers)
                assert answer.status_code == status
                assert answer.json()["error"]["type"] == "xspec"
                assert (await http.request(method, url)).status_code == 401

    asyncio.run(run())
