"""The order in which trials are begun: arms interleaved in time, the same however often it is asked.

Runs follow one another. Within a run, tasks come in a seeded order that all arms share, and within a task the arms come
in a seeded order of its own: so the trials that will be compared stand next to each other in time, whether one process
carries out all arms or each arm has its own process.
"""

import hashlib
from collections.abc import Iterable, Sequence
from typing import TypeVar

Arm = TypeVar("Arm")

SEED = "xspec schedule 1"


def rank(*parts: object) -> bytes:
    """A place in the seeded order."""
    return hashlib.sha256("\0".join(map(str, (SEED, *parts))).encode()).digest()


def order(arms: Iterable[tuple[str, Arm, Sequence[tuple[int, str]]]]) -> list[tuple[Arm, int, str]]:
    """Trials (arm, run, task) of all arms in the order to begin them.

    `arms` gives, for each, its spec id, the arm itself, and the (run, task) that are to be done.
    """
    places = [
        ((run, rank(run, task), rank(run, task, spec_id)), arm, run, task)
        for spec_id, arm, trials in arms
        for run, task in trials
    ]
    places.sort(key=lambda place: place[0])
    return [(arm, run, task) for _, arm, run, task in places]
