"""The adaptive window: how many attempts one key may have under way at once, as its 429s teach. Arithmetic only."""

from dataclasses import dataclass

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 30.0


@dataclass(slots=True)
class Window:
    """Additive increase, multiplicative decrease, floor 1; and a pause for all where fewer at once is not enough.

    `epoch` counts the cuts, `streak` those since the last attempt that was not limited. `until` is the end of the
    latest pause on the system's monotonic clock, and `pauses` its number. Until `renewed` no more than `left` attempts
    may be sent, because a reply told so in advance, at the time `news`.
    """

    size: float
    epoch: int = 0
    streak: int = 0
    pauses: int = 0
    until: float = 0.0
    left: int = 0
    renewed: float = 0.0
    news: float = 0.0

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

    def foresee(self, left: int, reset_s: float, sent: float, now: float) -> None:
        """A good reply says that the limit takes `left` more attempts beside those under way, until it resets.

        Replies overtake one another. One to an attempt sent before the last news may be older than that: it is believed
        if it leaves fewer.
        """
        if sent > self.news or left < self.left or now >= self.renewed:
            self.left = min(max(left, 0), 0xFFFF_FFFF)
            self.renewed = now + reset_s
            self.news = now

    def admit(self, now: float) -> None:
        """One more attempt is sent."""
        if now < self.renewed and self.left:
            self.left -= 1

    def pause(self, waited_out: int, now: float) -> float:
        """Seconds until the next attempt may be sent. Who waited out the very pause (its number) need not again."""
        limited = 0.0 if waited_out and waited_out == self.pauses else self.until - now
        return max(0.0, limited, 0.0 if self.left else self.renewed - now)
