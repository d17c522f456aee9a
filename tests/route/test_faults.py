"""What each refusal means: who stops, who is retried, whose fault it is, and that no key comes out."""

import asyncio
import traceback
from typing import Any

import pytest

from xspec.errors import RouteStopped, XspecError
from xspec.route.faults import CallFailed, ContentFiltered, ContextOverflow


def first_call(lab: Any, answer: Any, error: type[XspecError], **setting: Any) -> Any:
    """The error of a call that is the execution's first, after exactly one request."""

    async def run() -> Any:
        async with lab.routed(answer, **setting) as (server, route):
            with pytest.raises(error) as caught:
                await lab.call(route)
            assert lab.counts(server) == (1, 1, 1)
            assert lab.sleeps == []
            return caught.value

    return asyncio.run(run())


def later_call(lab: Any, answer: Any, error: type[XspecError]) -> Any:
    """The error of a call after one that went well."""

    async def run() -> Any:
        async with lab.routed(lab.in_turn(lab.OK, answer)) as (server, route):
            await lab.call(route)
            with pytest.raises(error) as caught:
                await lab.call(route)
            assert lab.counts(server) == (2, 2, 2)
            await lab.call(route)
            return caught.value

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("status", "code", "cause", "hint"),
    [
        (401, "invalid_api_key", "unauthorized", "LAB_KEY"),
        (402, None, "payment_required", "top up"),
        (403, None, "forbidden", "may not use m-1"),
        (404, None, "not_found", "/v1/chat/completions; the other usual path is /chat/completions"),
        (404, "model_not_found", "model_not_found", "no model m-1"),
        (503, "model_not_found", "model_not_found", "no model m-1"),
        (429, "insufficient_quota", "insufficient_quota", "quota"),
        (400, None, "bad_request", "m-1"),
        (422, None, "bad_request", "sampling"),
        (405, None, "bad_request", "first call"),
    ],
)
def test_stops(lab: Any, status: int, code: str | None, cause: str, hint: str) -> None:
    stopped = first_call(lab, lab.http(status, lab.error("No. 不行", code)), RouteStopped)
    assert stopped.cause == cause
    assert hint in stopped.hint
    assert f"{status}" in str(stopped)
    assert "不行" in str(stopped)
    assert lab.ended[0].error == cause


def test_the_hint_of_a_404_adds_v1_where_it_is_missing(lab: Any) -> None:
    async def run() -> None:
        async with lab.served(lab.http(404)) as server:
            base = {"base_url": f"http://127.0.0.1:{server.port}/api", "path": "/chat/completions"}
            route = lab.make(lab.spec([lab.member(server.port, **base)]))
            with pytest.raises(RouteStopped, match="other usual path is /api/v1/chat/completions"):
                await lab.call(route)
            await route.aclose()

    asyncio.run(run())


def test_a_key_of_another_provider_is_named_by_its_owner(lab: Any) -> None:
    lab.environ["LAB_KEY"] = "sk-or-v1-abcdefghijklmnop"
    stopped = first_call(lab, lab.http(401), RouteStopped)
    assert "OpenRouter" in stopped.hint


def test_after_a_stop_nothing_more_is_sent(lab: Any) -> None:
    async def run() -> None:
        async with lab.routed(lab.http(401)) as (server, route):
            for _ in range(3):
                with pytest.raises(RouteStopped) as caught:
                    await lab.call(route)
                assert caught.value.cause == "unauthorized"
            assert lab.counts(server) == (1, 1, 1)

    asyncio.run(run())


def test_a_401_stops_later_too(lab: Any) -> None:
    async def run() -> None:
        async with lab.routed(lab.in_turn(lab.OK, lab.http(401))) as (_, route):
            await lab.call(route)
            with pytest.raises(RouteStopped):
                await lab.call(route)

    asyncio.run(run())


def test_a_400_later_costs_its_trial_only(lab: Any) -> None:
    assert later_call(lab, lab.http(400, lab.error("bad")), CallFailed).token == "bad_request"
    assert later_call(lab, lab.http(302, location="/login"), CallFailed).token == "redirect"


def test_a_resumed_execution_is_past_its_first_call(lab: Any) -> None:
    references = {"references": {"a": {"served_model": "m-1"}}}
    failed = first_call(lab, lab.http(400, lab.error("bad")), CallFailed, options=references)
    assert failed.token == "bad_request"


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, {"error": {"message": "too long", "code": "context_length_exceeded"}}),
        (400, {"error": {"message": "This model's maximum context length is 8192 tokens."}}),
        (400, {"error": "prompt is too long: 210000 tokens > 200000 maximum"}),
        (422, {"detail": "Input length 9000 exceeds the limit"}),
        (413, b"<html>413 Request Entity Too Large</html>"),
    ],
)
def test_an_overflow_is_the_agents(lab: Any, status: int, body: Any) -> None:
    assert first_call(lab, lab.http(status, body), ContextOverflow).token == "context_overflow"
    later_call(lab, lab.http(status, body), ContextOverflow)
    assert lab.ended[-2].error == "context_overflow"


def test_a_filtered_prompt_is_the_agents(lab: Any) -> None:
    azure = lab.error("filtered", "content_filter")
    assert first_call(lab, lab.http(400, azure), ContentFiltered).token == "content_filter"


@pytest.mark.parametrize(
    ("body", "tokens"),
    [
        ({"error": {"code": 502, "message": "Provider returned error"}}, ["server_error", None]),
        ({"error": {"code": 429, "message": "slow down"}}, ["rate_limited", None]),
        ({"error": {"code": "odd", "message": "?"}}, ["malformed_reply", None]),
        ({"choices": []}, ["malformed_reply", None]),
        ({"choices": [{"message": None}]}, ["malformed_reply", None]),
        (
            {"choices": [{"finish_reason": "error", "error": {"code": 502}, "message": {}}]},
            ["server_error", None],
        ),
        ([], ["malformed_reply", None]),
        (b"", ["malformed_reply", None]),
        (b"[" * 100_000, ["malformed_reply", None]),
        (b'{"choices": [{"message": {"role": "assistant", "content": NaN}}]}', ["malformed_reply", None]),
    ],
)
def test_errors_in_the_clothes_of_a_reply(lab: Any, body: Any, tokens: list[str | None]) -> None:
    async def run() -> None:
        body_bytes = body if not isinstance(body, list) else b"[]"
        async with lab.routed(lab.in_turn(lab.http(200, body_bytes))) as (_, route):
            await lab.call(route)
            assert [row.error for row in lab.ended] == tokens
            assert [row.status for row in lab.ended] == [200, 200]

    asyncio.run(run())


@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500, 302])
def test_no_key_in_rows_errors_and_reprs(lab: Any, status: int) -> None:
    """A provider that echoes the key gets it into nothing we keep or show."""
    echo = f"Incorrect API key: {lab.KEY}, sent as Bearer {lab.KEY}\n" * 40

    async def run() -> None:
        answer = lab.http(status, lab.error(echo), location=f"http://x/{lab.KEY}", x_request_id="r-1")
        async with lab.routed(answer, route={"max_wait_s": 0}) as (_, route):
            with pytest.raises(XspecError) as caught:
                await lab.call(route)
            error = caught.value
            shown = "".join(traceback.format_exception(error)) + repr(error) + repr(vars(error))
            assert len(str(error)) < 900
            assert error.__context__ is None
            kept = [
                shown,
                repr(lab.rows),
                repr(route),
                repr(route._lanes),
                repr(route._lanes["a"].asked(lab.place, proven=False)),
                repr(route.fingerprints),
            ]
            assert not any(lab.KEY in text for text in kept)
            assert lab.rows

    asyncio.run(run())
