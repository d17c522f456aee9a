"""How many attempts are under way at once: fewer after a 429, more while it goes well."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Slot:
    """One attempt's leave to be sent. `slow_down` says that it was answered by a 429."""

    __slots__ = ("epoch", "slow")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.slow = False

    def slow_down(self) -> None:
        self.slow = True


class Pacer:
    """Additive increase, multiplicative decrease. One loop, one process; floor 1, ceiling `limit`."""

    def __init__(self, limit: int) -> None:
        if limit < 1:
            raise ValueError(f"a limit of {limit} attempts at once sends nothing")
        self.limit = limit
        self.window = float(limit)
        self.in_flight = 0
        self._epoch = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[Slot]:
        """Wait, first come first served, until one more attempt may be sent; then count it as in flight."""
        await self._enter()
        slot = Slot(self._epoch)
        try:
            yield slot
        finally:
            self.in_flight -= 1
            self._adapt(slot)
            self._admit()

    async def _enter(self) -> None:
        if not self._waiting and self.in_flight < int(self.window):
            self.in_flight += 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                # Admitted and cancelled in the same breath: hand the place on.
                self.in_flight -= 1
            else:
                self._waiting.remove(turn)
            self._admit()
            raise

    def _admit(self) -> None:
        while self._waiting and self.in_flight < int(self.window):
            turn = self._waiting.popleft()
            if not turn.done():
                self.in_flight += 1
                turn.set_result(None)

    def _adapt(self, slot: Slot) -> None:
        if not slot.slow:
            self.window = min(float(self.limit), self.window + 1 / self.window)
        elif slot.epoch == self._epoch:
            # A burst of 429s is one piece of news: only attempts sent since the last cut can cause another.
            self._epoch += 1
            self.window = max(1.0, self.window / 2)


class Pacers:
    """One Pacer for each (origin, key fingerprint), for routes of one process that share a limit."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pacers: dict[tuple[str, str], Pacer] = {}

    def of(self, origin: str, key: str) -> Pacer:
        return self._pacers.setdefault((origin, key), Pacer(self._limit))
