"""Rate-limit headers on good replies: the pacer waits before the provider has to refuse."""

import asyncio
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from xspec.route.pacing import Pacers
from xspec.route.waits import Allowance, allowance
from xspec.route.window import Window

NOW = 1_800_000_000.0
TOKENS = 14
"""What one reply of the laboratory's server uses up."""


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "6m0s"}, Allowance(0, 360)),
        ({"x-ratelimit-remaining-requests": "7", "x-ratelimit-reset-requests": "20ms"}, Allowance(7, 0.02)),
        ({"x-ratelimit-remaining-tokens": "45", "x-ratelimit-reset-tokens": "1.5s"}, Allowance(3, 1.5)),
        ({"ratelimit-remaining": "0", "ratelimit-reset": "30"}, Allowance(0, 30)),
        ({"x-ratelimit-remaining": "2", "x-ratelimit-reset": str(NOW + 12)}, Allowance(2, 12)),
        (
            {
                "x-ratelimit-remaining-requests": "900",
                "x-ratelimit-reset-requests": "9s",
                "x-ratelimit-remaining-tokens": "13",
                "x-ratelimit-reset-tokens": "3s",
            },
            Allowance(0, 3),
        ),
        (
            {
                "x-ratelimit-remaining-requests-day": "0",
                "x-ratelimit-reset-requests-day": "9000",
                "x-ratelimit-remaining-tokens-minute": "0",
                "x-ratelimit-reset-tokens-minute": "3",
            },
            Allowance(0, 9000),
        ),
        ({"x-ratelimit-remaining-requests": "0"}, None),
        ({"x-ratelimit-reset-requests": "6m0s"}, None),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "soon"}, None),
        ({"x-ratelimit-remaining-requests": "few", "x-ratelimit-reset-requests": "1s"}, None),
        ({"x-ratelimit-remaining-requests": "-3", "x-ratelimit-reset-requests": "1s"}, Allowance(0, 1)),
        ({"ratelimit-remaining": "0", "ratelimit-reset": str(NOW - 5)}, None),
        ({"ratelimit-remaining": "0", "x-ratelimit-reset": "5"}, None),
    ],
)
def test_what_the_headers_allow(headers: dict[str, str], expected: Allowance | None) -> None:
    found = allowance(headers, NOW, TOKENS)
    if expected is None:
        assert found is None
    else:
        assert found is not None
        assert (found.requests, found.reset_s) == (expected.requests, pytest.approx(expected.reset_s))


Told = Callable[[int, float], dict[str, str]]


def in_requests(left: int, reset_s: float) -> dict[str, str]:
    return {
        "x-ratelimit-remaining-requests": str(left),
        "x-ratelimit-reset-requests": f"{math.ceil(1000 * reset_s)}ms",
    }


def in_tokens(left: int, reset_s: float) -> dict[str, str]:
    return {
        "x-ratelimit-remaining-requests": "9999",
        "x-ratelimit-reset-requests": "1ms",
        "x-ratelimit-remaining-tokens": str(TOKENS * left),
        "x-ratelimit-reset-tokens": f"{reset_s + 0.001:.3f}s",
    }


def as_drafted(left: int, reset_s: float) -> dict[str, str]:
    return {"ratelimit-remaining": str(left), "ratelimit-reset": str(math.ceil(reset_s))}


class Provider:
    """Takes `allowed` requests a window of `window_s`, refuses the others, and tells of it on good replies."""

    def __init__(self, lab: Any, told: Told, allowed: int, window_s: float) -> None:
        self._lab, self._told, self._allowed, self._window_s = lab, told, allowed, window_s
        self._began, self._taken = -math.inf, 0
        self.refused = 0

    async def answer(self, n: int, request: Any) -> bytes:
        now = time.monotonic()
        if now >= self._began + self._window_s:
            self._began, self._taken = now, 0
        if self._taken >= self._allowed:
            self.refused += 1
            return bytes(self._lab.http(429, self._lab.error("slow down"), retry_after="0.1"))
        self._taken += 1
        await asyncio.sleep(0.005 * (n % 3))
        reset_s = max(0.0, self._began + self._window_s - time.monotonic())
        headers = self._told(self._allowed - self._taken, reset_s)
        named = {name.replace("-", "_"): value for name, value in headers.items()}
        return bytes(self._lab.http(200, self._lab.completion(), **named))


async def calls(lab: Any, provider: Provider, folder: Path | None, count: int, **route: Any) -> list[Any]:
    """The replies to `count` calls, asked at once by two routes as of two processes if they share a folder."""
    async with lab.served(provider.answer) as server:
        data = lab.spec([lab.member(server.port)], route={"max_wait_s": 20, **route})
        pacers = [Pacers(6, folder) for _ in range(1 if folder is None else 2)]
        routes = [lab.make(data, pacers=one, sleep=asyncio.sleep) for one in pacers]
        wanted = [routes[n % len(routes)].call(lab.conversation(), lab.pins, lab.place) for n in range(count)]
        try:
            return list(await asyncio.wait_for(asyncio.gather(*wanted), 60))
        finally:
            for made in routes:
                await made.aclose()
            for one in pacers:
                one.close()


@pytest.mark.parametrize("shared", [False, True], ids=["alone", "shared"])
@pytest.mark.parametrize("told", [in_requests, in_tokens, as_drafted])
def test_a_limit_that_is_told_is_not_run_into(lab: Any, tmp_path: Path, told: Told, shared: bool) -> None:
    provider = Provider(lab, told, allowed=8, window_s=0.5)
    replies = asyncio.run(calls(lab, provider, tmp_path / "pace" if shared else None, 20))
    assert len(replies) == 20
    assert provider.refused == 0
    assert all(reply.attempts == 1 for reply in replies)


def test_the_same_limit_untold_is_run_into(lab: Any) -> None:
    provider = Provider(lab, lambda left, reset_s: {}, allowed=8, window_s=0.5)
    assert len(asyncio.run(calls(lab, provider, None, 20))) == 20
    assert provider.refused > 0


def test_the_wait_is_bounded_by_max_wait_s(lab: Any) -> None:
    provider = Provider(lab, lambda left, reset_s: in_requests(0, 86_400), allowed=99, window_s=99)
    replies = asyncio.run(calls(lab, provider, None, 9, max_wait_s=0.05))
    assert len(replies) == 9


def test_a_limit_that_refills_as_fast_as_it_is_used_pauses_nobody(lab: Any) -> None:
    async def run() -> None:
        six = {"x_ratelimit_remaining_requests": "6", "x_ratelimit_reset_requests": "1h"}
        async with lab.routed(lab.http(200, lab.completion(), **six), options={"limit": 6}) as (_, route):
            await asyncio.gather(*(lab.call(route) for _ in range(40)))

    asyncio.run(asyncio.wait_for(run(), 30))


def test_few_left_are_not_overrun_by_a_burst_after_a_lull(lab: Any) -> None:
    """One call at a time uses up most of the limit; then many come at once, and only as many as are left go out."""

    async def run() -> None:
        provider = Provider(lab, in_requests, allowed=8, window_s=1.5)
        async with lab.served(provider.answer) as server:
            route = lab.make(lab.spec([lab.member(server.port)]), limit=6, sleep=asyncio.sleep)
            for _ in range(5):
                await lab.call(route)
            await asyncio.gather(*(lab.call(route) for _ in range(12)))
            assert provider.refused == 0
            await route.aclose()

    asyncio.run(asyncio.wait_for(run(), 30))


def test_news_that_others_overtook_is_believed_only_if_it_leaves_fewer() -> None:
    window = Window(8.0)
    window.foresee(3, 10.0, sent=1.0, now=2.0)
    window.foresee(7, 10.0, sent=1.0, now=2.1)
    assert window.left == 3
    window.foresee(2, 10.0, sent=1.0, now=2.2)
    for now in (2.3, 2.4):
        assert window.pause(0, now) == 0
        window.admit(now)
    assert window.pause(0, 3.0) == pytest.approx(9.2)
    window.foresee(7, 10.0, sent=2.3, now=3.0)
    assert (window.left, window.pause(0, 3.0)) == (7, 0)
    window.foresee(-1, 5.0, sent=3.1, now=4.0)
    assert window.pause(0, 4.0) == pytest.approx(5)
    assert window.pause(0, 9.0) == 0
