"""The adaptive window: how many attempts one key may have under way at once, as its 429s teach. Arithmetic only."""

from dataclasses import dataclass

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 30.0


@dataclass(slots=True)
class Window:
    """Additive increase, multiplicative decrease, floor 1; and a pause for all where fewer at once is not enough.

    `epoch` counts the cuts, `streak` those since the last attempt that was not limited. `until` is the end of the
    latest pause on the system's monotonic clock, and `pauses` its number.
    """

    size: float
    epoch: int = 0
    streak: int = 0
    pauses: int = 0
    until: float = 0.0

    def grow(self, limit: int) -> None:
        """An attempt was not limited."""
        self.size = min(float(limit), self.size + 1 / self.size)
        self.streak = 0

    def cut(self, epoch: int, asked_s: float | None, now: float) -> int:
        """An attempt sent in `epoch` was answered by a 429 that asks for `asked_s` (None: it does not say).

        A burst of 429s is one piece of news: only attempts sent since the last cut can cause another. The first
        cut only halves; another without a success in between, or one at the floor, makes everybody pause, because
        then the limit is one on requests over time. Returns the number of the pause its caller need not wait
        for once more, having been told to wait by itself; 0 for none.
        """
        if epoch != self.epoch:
            return 0
        self.epoch += 1
        self.streak += 1
        at_floor = self.size < 2
        self.size = max(1.0, self.size / 2)
        if self.streak < 2 and not at_floor:
            return 0
        own = FIRST_PAUSE_S * 2.0 ** min(self.streak - 1, 30)
        end = now + (asked_s if asked_s is not None else min(own, LONGEST_PAUSE_S))
        self.pauses += 1
        self.until = max(self.until, end)
        return self.pauses

    def foresee(self, reset_s: float, now: float) -> None:
        """A good reply says that the limit is used up for `reset_s`: everybody pauses before a 429 says so."""
        if now + reset_s > self.until:
            self.pauses += 1
            self.until = now + reset_s

    def pause(self, waited_out: int, now: float) -> float:
        """Seconds until the next attempt may be sent; none for who waited out the very pause (its number) itself."""
        return 0.0 if waited_out and waited_out == self.pauses else max(0.0, self.until - now)
