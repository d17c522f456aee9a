"""How many attempts are under way at once: fewer after a 429, more while it goes well, and none while a
limit is used up, which many providers tell before they refuse.

A Pacer queues the attempts of one event loop; its meter says whether one more may be sent. Meter counts this process
alone, xspec.route.shared_pace.SharedMeter all processes that use the same key at the same origin.
"""

import asyncio
import hashlib
import math
import time
from bisect import insort
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from xspec.route.shared_pace import SharedMeter
from xspec.route.window import Window


@dataclass(frozen=True, slots=True)
class Leave:
    """One attempt's leave to be sent: the window's epoch, and how many are under way with it."""

    epoch: int
    concurrency: int


class Metering(Protocol):
    """What a Pacer asks before it sends. Nothing here waits."""

    limit: int

    @property
    def window(self) -> float: ...
    def take(self, waited_out: int) -> tuple[int, int] | float:
        """(epoch, attempts under way with this one), or the seconds after which to ask again."""

    def give_back(self) -> None: ...
    def grow(self) -> None: ...
    def cut(self, epoch: int, asked_s: float | None) -> int: ...
    def foresee(self, left: int, reset_s: float, sent: float) -> None: ...
    def stop_waiting(self) -> None: ...
    def close(self) -> None: ...


class Meter:
    """Counts the attempts of this process alone."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._window = Window(float(limit))
        self._in_flight = 0

    @property
    def window(self) -> float:
        return self._window.size

    def take(self, waited_out: int) -> tuple[int, int] | float:
        now = time.monotonic()
        pause = self._window.pause(waited_out, now)
        if pause > 0:
            return pause
        if self._in_flight >= int(self._window.size):
            return math.inf
        self._in_flight += 1
        self._window.admit(now)
        return self._window.epoch, self._in_flight

    def give_back(self) -> None:
        self._in_flight -= 1

    def grow(self) -> None:
        self._window.grow(self.limit)

    def cut(self, epoch: int, asked_s: float | None) -> int:
        return self._window.cut(epoch, asked_s, time.monotonic())

    def foresee(self, left: int, reset_s: float, sent: float) -> None:
        self._window.foresee(left - self._in_flight + 1, reset_s, sent, time.monotonic())

    def stop_waiting(self) -> None:
        pass

    def close(self) -> None:
        pass


class Slot:
    """One attempt's place among those under way. `slow_down` says that it was answered by a 429."""

    __slots__ = ("_meter", "_sent", "leave", "slow")

    def __init__(self, meter: Metering, leave: Leave) -> None:
        self._meter = meter
        self._sent = time.monotonic()
        self.leave = leave
        self.slow = False

    @property
    def concurrency(self) -> int:
        """Attempts under way when this one was sent, itself counted, over all processes that are counted together."""
        return self.leave.concurrency

    def slow_down(self, asked_s: float | None = None) -> int:
        """`asked_s` is the wait that the provider asked for. The result goes into the next `slot` of the same call."""
        self.slow = True
        return self._meter.cut(self.leave.epoch, asked_s)

    def foresee(self, left: int, reset_s: float) -> None:
        """A good reply says that the provider takes `left` more requests before its limit resets in `reset_s`.

        Others under way may not be counted in that yet, and are left room for. When nothing is left, all pause.
        """
        self._meter.foresee(left, reset_s, self._sent)


@dataclass(order=True, slots=True)
class _Turn:
    since: float
    number: int
    waited_out: int = field(compare=False)
    future: asyncio.Future[Leave] = field(compare=False)


class Pacer:
    """Lets attempts through as its meter allows. One loop, one process."""

    def __init__(self, limit: int, meter: Metering | None = None) -> None:
        if limit < 1:
            raise ValueError(f"a limit of {limit} attempts at once sends nothing")
        self.limit = limit
        self.in_flight = 0
        self._meter = meter or Meter(limit)
        self._queue: list[_Turn] = []
        self._turns = 0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def window(self) -> float:
        """How many may be under way, before rounding down."""
        return self._meter.window

    @asynccontextmanager
    async def slot(self, since: float | None = None, waited_out: int = 0) -> AsyncIterator[Slot]:
        """Wait until one more attempt may be sent; then count it as under way.

        `since` is when its call first queued (`time.monotonic()`): calls that came first go first, so one that was
        limited does not go to the back. `waited_out`: what `slow_down` gave the call's last attempt.
        """
        slot = Slot(self._meter, await self._enter(time.monotonic() if since is None else since, waited_out))
        try:
            yield slot
        finally:
            self._leave()
            if not slot.slow:
                self._meter.grow()
            self._admit()

    async def _enter(self, since: float, waited_out: int) -> Leave:
        self._turns += 1
        turn = _Turn(since, self._turns, waited_out, asyncio.get_running_loop().create_future())
        insort(self._queue, turn)
        self._admit()
        try:
            return await turn.future
        except asyncio.CancelledError:
            if turn.future.done() and not turn.future.cancelled():
                # Admitted and cancelled in the same breath: hand the place on.
                self._leave()
            else:
                self._queue.remove(turn)
            self._admit()
            raise

    def _leave(self) -> None:
        self.in_flight -= 1
        self._meter.give_back()

    def _admit(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._queue:
            if self._queue[0].future.done():
                # Cancelled, and about to take itself out.
                return
            got = self._meter.take(self._queue[0].waited_out)
            if isinstance(got, float):
                if got < math.inf:
                    self._timer = asyncio.get_running_loop().call_later(got, self._admit)
                return
            self.in_flight += 1
            self._queue.pop(0).future.set_result(Leave(*got))
        self._meter.stop_waiting()


class Pacers:
    """One Pacer for each (origin, key fingerprint), for routes of one process that share a limit.

    With a `folder`, processes that name the same one share it too: see SharedMeter. `alone` says why they cannot.
    """

    def __init__(self, limit: int, folder: Path | None = None) -> None:
        self._limit = limit
        self._folder = folder
        self._pacers: dict[tuple[str, str], Pacer] = {}
        self._meters: list[SharedMeter] = []
        self.alone: str | None = None

    def of(self, origin: str, key: str, *, shared: bool = True) -> Pacer:
        """`shared` is false for an address that only this process knows."""
        pacer = self._pacers.get((origin, key))
        if pacer is None:
            if shared and self._folder is None:
                self.alone = "there is no folder that only this user can write"
            meter = self._shared_meter(origin, key) if shared and self._folder is not None else None
            pacer = self._pacers[origin, key] = Pacer(self._limit, meter)
        return pacer

    def _shared_meter(self, origin: str, key: str) -> SharedMeter | None:
        assert self._folder is not None
        name = hashlib.sha256(f"{origin}\0{key}".encode()).hexdigest()[:16]
        try:
            meter = SharedMeter(self._folder / name, self._limit)
        except OSError as error:
            self.alone = f"{self._folder} cannot be used ({error.strerror or error})"
            return None
        self._meters.append(meter)
        return meter

    def close(self) -> None:
        """Stop being counted among the processes that share a limit."""
        for meter in self._meters:
            meter.close()
        self._meters.clear()
