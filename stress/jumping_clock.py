"""`python -m xspec` under a wall clock that jumps by up to a day, forth and back, at every twentieth look at it."""

import random
import sys
import time

from xspec.__main__ import main

DAY_S = 86_400.0


def install(seed: int = 1) -> None:
    """Replaces `time.time`; the monotonic clock is left as it is."""
    draw, real = random.Random(seed), time.time
    state = {"looks": 0, "shift": 0.0}

    def jumping() -> float:
        state["looks"] += 1
        if state["looks"] % 20 == 0:
            state["shift"] = draw.uniform(-DAY_S, DAY_S)
        return real() + state["shift"]

    time.time = jumping


if __name__ == "__main__":
    install()
    sys.exit(main())
