"""Pacing: fewer at once after a 429, more later, never none, never above the limit."""

import asyncio
from typing import Any

import pytest

from xspec.route.pacing import Pacer, Pacers


async def burst(pacer: Pacer, slow: bool, count: int) -> int:
    """The most attempts seen in flight while `count` want to be sent, all answered alike."""
    most = 0

    async def attempt() -> None:
        nonlocal most
        async with pacer.slot() as slot:
            most = max(most, pacer.in_flight)
            await asyncio.sleep(0)
            if slow:
                slot.slow_down(0.0)

    await asyncio.gather(*(attempt() for _ in range(count)))
    assert pacer.in_flight == 0
    return most


def test_the_limit_is_a_ceiling() -> None:
    assert asyncio.run(burst(Pacer(4), slow=False, count=50)) == 4


def test_a_burst_of_429s_halves_once() -> None:
    pacer = Pacer(16)
    asyncio.run(burst(pacer, slow=True, count=16))
    assert pacer.window == 8


def test_the_floor_is_one_and_the_ceiling_is_regained() -> None:
    pacer = Pacer(8)
    asyncio.run(burst(pacer, slow=True, count=200))
    assert pacer.window == 1
    assert asyncio.run(burst(pacer, slow=True, count=3)) == 1
    asyncio.run(burst(pacer, slow=False, count=200))
    assert pacer.window == 8


def test_growth_is_about_one_a_round() -> None:
    pacer = Pacer(16)
    asyncio.run(burst(pacer, slow=True, count=16))
    asyncio.run(burst(pacer, slow=False, count=8))
    assert 8.8 < pacer.window < 9.1


@pytest.mark.parametrize("when", ["waiting", "admitted"])
def test_a_cancelled_wait_leaks_no_place(when: str) -> None:
    async def run() -> None:
        pacer = Pacer(1)
        inside, leave = asyncio.Event(), asyncio.Event()

        async def hold() -> None:
            async with pacer.slot():
                inside.set()
                await leave.wait()
            if when == "admitted":
                first.cancel()  # it has the place by now, but has not run yet

        async def enter() -> None:
            async with pacer.slot():
                pass

        holder = asyncio.create_task(hold())
        await inside.wait()
        first, second = asyncio.create_task(enter()), asyncio.create_task(enter())
        await asyncio.sleep(0)
        if when == "waiting":
            first.cancel()
        leave.set()
        await asyncio.wait_for(asyncio.gather(holder, first, second, return_exceptions=True), 2)
        assert first.cancelled()
        assert pacer.in_flight == 0

    asyncio.run(run())


def test_order_of_arrival_is_kept() -> None:
    async def run() -> list[int]:
        pacer, order = Pacer(1), []

        async def attempt(number: int) -> None:
            async with pacer.slot():
                order.append(number)
                await asyncio.sleep(0)

        await asyncio.gather(*(attempt(number) for number in range(10)))
        return order

    assert asyncio.run(run()) == list(range(10))


def test_no_room_for_none() -> None:
    with pytest.raises(ValueError, match="0"):
        Pacer(0)


def test_a_429_slows_the_route_down(lab: Any) -> None:
    async def run() -> None:
        pacers = Pacers(16)
        limited = [lab.http(429, retry_after="1")]
        async with lab.routed(lab.in_turn(*limited), options={"pacers": pacers}) as (_, route):
            await lab.call(route)
            assert 8 < route._lanes["a"].pacer.window < 9
            other = lab.make(lab.path.read_bytes(), pacers=pacers)
            assert other._lanes["a"].pacer is route._lanes["a"].pacer
            await other.aclose()

    asyncio.run(run())
