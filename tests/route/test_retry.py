"""Retries: how often, after which waits, and what a 429 does not use up. No test here sleeps."""

import asyncio
from email.utils import formatdate
from typing import Any

import pytest

from xspec.route.faults import CallFailed, Fault
from xspec.route.retry import backoff, limited_wait
from xspec.route.waits import asked_wait
from xspec.spec.models import RetryPolicy

NOW = 1_800_000_000.0


def failing(lab: Any, answer: Any, **route: Any) -> tuple[CallFailed, tuple[int, int, int]]:
    async def run() -> tuple[CallFailed, tuple[int, int, int]]:
        async with lab.routed(answer, route=route) as (server, made):
            with pytest.raises(CallFailed) as caught:
                await lab.call(made)
            return caught.value, lab.counts(server)

    return asyncio.run(run())


def succeeding(lab: Any, *replies: Any, **route: Any) -> tuple[Any, tuple[int, int, int]]:
    async def run() -> tuple[Any, tuple[int, int, int]]:
        async with lab.routed(lab.in_turn(*replies), route=route) as (server, made):
            return await lab.call(made), lab.counts(server)

    return asyncio.run(run())


def test_attempts_and_waits_follow_the_policy(lab: Any) -> None:
    failed, counts = failing(lab, lab.http(502), retry={"max_attempts": 5})
    assert failed.token == "server_error"
    assert "5 attempts" in str(failed)
    assert counts == (5, 5, 5)
    assert lab.sleeps == [1, 2, 3, 3]
    assert [row.attempt for row in lab.ended] == [0, 1, 2, 3, 4]
    assert [round(row.waited_s) for row in lab.ended] == [0, 1, 2, 3, 3]
    assert [(row.status, row.error) for row in lab.ended] == [(502, "server_error")] * 5


def test_a_recovered_call_says_what_it_took(lab: Any) -> None:
    reply, counts = succeeding(
        lab, lab.http(500), None, lab.http(200, b'{"id": "c", "cho'), retry={"max_attempts": 4}
    )
    assert counts == (4, 4, 4)
    assert (reply.attempts, round(reply.waited_s)) == (4, 6)
    assert [row.error for row in lab.ended] == ["server_error", "connection", "malformed_reply", None]


def test_a_429_uses_up_no_attempt(lab: Any) -> None:
    limited = [lab.http(429, retry_after="2")] * 8
    reply, counts = succeeding(lab, *limited, lab.http(500), retry={"max_attempts": 2})
    assert (reply.attempts, counts) == (10, (10, 10, 10))
    assert lab.sleeps == [2.0] * 8 + [1]


def test_429s_are_waited_out_up_to_max_wait_s(lab: Any) -> None:
    failed, counts = failing(lab, lab.http(429, retry_after="25"), max_wait_s=60)
    assert failed.token == "rate_limited"
    assert (lab.sleeps, counts) == ([25.0, 25.0], (3, 3, 3))


def test_a_429_that_asks_for_more_than_is_left_ends_the_call_at_once(lab: Any) -> None:
    failed, counts = failing(lab, lab.http(429, retry_after="61"), max_wait_s=60)
    assert (failed.token, lab.sleeps, counts) == ("rate_limited", [], (1, 1, 1))


def test_429s_that_ask_for_nothing_end_as_well(lab: Any) -> None:
    retry = {"backoff_s": 0, "backoff_base": 1}
    _, counts = failing(lab, lab.http(429, retry_after="0"), max_wait_s=5, retry=retry)
    assert counts[0] < 20
    assert sum(lab.sleeps) <= 5


def test_waits_without_a_hint_grow(lab: Any) -> None:
    failing(lab, lab.http(429), max_wait_s=6)
    assert lab.sleeps == [1, 2, 3]


@pytest.mark.parametrize(
    ("reply", "retry", "tries"),
    [
        (503, {}, 3),
        (504, {}, 1),
        (None, {}, 3),
        (None, {"connection_errors": False}, 1),
        (200, {}, 3),
        (200, {"connection_errors": False}, 1),
        (503, {"max_attempts": 1}, 1),
    ],
)
def test_the_policy_says_what_is_tried_again(
    lab: Any, reply: int | None, retry: dict[str, Any], tries: int
) -> None:
    _, counts = failing(
        lab, lambda n, request: None if reply is None else lab.http(reply, b"<html>"), retry=retry
    )
    assert counts == (tries, tries, tries)


@pytest.mark.parametrize(("timeouts", "tries"), [(True, 3), (False, 1)])
def test_a_body_that_drips_in_is_a_timeout(lab: Any, timeouts: bool, tries: int) -> None:
    def drip(n: int, request: Any) -> Any:
        return [lab.OK[:40]] + [lab.OK[40 + i : 41 + i] for i in range(30)]

    failed, counts = failing(lab, drip, timeout_s=0.15, retry={"timeouts": timeouts})
    assert failed.token == "timeout"
    assert counts == (tries, tries, tries)
    assert all(0.1 < row.latency_s < 0.6 for row in lab.ended)


def test_nobody_listening(lab: Any) -> None:
    async def run() -> None:
        async with lab.served() as server:
            pass
        route = lab.make(lab.spec([lab.member(server.port)]))
        with pytest.raises(CallFailed, match=f"127.0.0.1:{server.port}.*failed: ConnectError"):
            await lab.call(route)
        await route.aclose()
        assert [row.error for row in lab.ended] == ["connection"] * 3

    asyncio.run(run())


def test_cancellation_is_recorded(lab: Any) -> None:
    async def run() -> None:
        arrived = asyncio.Event()

        async def never() -> bytes:
            arrived.set()
            await asyncio.sleep(60)
            return b""

        async with lab.routed(lambda n, request: never()) as (server, route):
            task = asyncio.create_task(lab.call(route))
            await asyncio.wait_for(arrived.wait(), 5)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert lab.counts(server) == (1, 1, 1)
            assert lab.ended[0].error == "cancelled"

    asyncio.run(run())


def test_arrivals_and_rows_agree_under_faults(lab: Any) -> None:
    """The server's count is the ledger's, with every kind of fault and sixteen calls at once."""
    kinds = [None, lab.http(500), lab.http(429, retry_after="1"), lab.http(200, b"{"), lab.http(503)]

    async def run() -> None:
        answer = lambda n, request: lab.OK if n % 2 else kinds[n // 2 % 5]  # noqa: E731
        async with lab.routed(answer, route={"retry": {"max_attempts": 9}}) as (server, route):
            calls = [lab.call(route) for _ in range(60)]
            done = await asyncio.gather(*calls, return_exceptions=True)
            arrived, begun, ended = lab.counts(server)
            assert arrived == begun == ended > 60
            replies = [reply for reply in done if not isinstance(reply, Exception)]
            assert len(replies) == sum(row.error is None for row in lab.ended)
            assert all(isinstance(error, CallFailed) for error in done if isinstance(error, Exception))
            assert max(row.concurrency for row in lab.rows if row.kind == "attempt_started") <= 16

    asyncio.run(run())


def policy(**changes: Any) -> RetryPolicy:
    fields = {"max_attempts": 3, "backoff_s": 2.0, "backoff_base": 3.0, "backoff_max_s": 30.0, "statuses": ()}
    return RetryPolicy(**{**fields, "timeouts": True, "connection_errors": True, **changes})


def test_backoff_is_a_pure_function() -> None:
    assert [backoff(policy(), n) for n in (1, 2, 3, 4, 5000)] == [2, 6, 18, 30, 30]


def test_a_429_is_never_answered_at_once() -> None:
    nothing = policy(backoff_s=0.0)
    waits = [limited_wait(nothing, Fault("rate_limited", "", 429, "wait"), n) for n in (1, 2, 8, 5000)]
    assert waits == [0.01, 0.02, 1.0, 1.0]


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": formatdate(NOW + 90, usegmt=True)}, 90),
        ({"retry-after": formatdate(NOW - 90, usegmt=True)}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "0"}, None),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"x-ratelimit-reset-requests": "6m0s"}, 360),
        ({"x-ratelimit-reset-tokens": "20ms"}, 0.02),
        ({"x-ratelimit-reset-requests": "1h2m3.5s"}, 3723.5),
        ({"x-ratelimit-reset": str(NOW + 12)}, 12),
        ({"x-ratelimit-reset": str(int((NOW + 12) * 1000))}, 12),
        ({"x-ratelimit-reset": "30"}, 30),
        ({"x-ratelimit-reset": "later"}, None),
        (
            {
                "x-ratelimit-reset-requests": "9s",
                "x-ratelimit-remaining-requests": "100",
                "x-ratelimit-reset-tokens": "3s",
                "x-ratelimit-remaining-tokens": "0",
            },
            3,
        ),
        ({"x-ratelimit-reset-requests": "9s", "x-ratelimit-reset-tokens": "3s"}, 9),
        (
            {
                "x-ratelimit-reset-requests": "9s",
                "x-ratelimit-remaining-requests": "5",
                "x-ratelimit-reset-tokens": "3s",
                "x-ratelimit-remaining-tokens": "5",
            },
            3,
        ),
        ({"retry-after": "2", "x-ratelimit-reset-requests": "9s"}, 2),
    ],
)
def test_what_headers_ask_for(headers: dict[str, str], wait: float | None) -> None:
    asked = asked_wait(headers, NOW)
    assert asked == (None if wait is None else pytest.approx(wait))
