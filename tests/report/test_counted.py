"""How many of what, in words."""

import pytest

from xspec.counted import counted


@pytest.mark.parametrize(
    ("n", "noun", "said"),
    [
        (0, "rule", "0 rules"),
        (1, "rule", "1 rule"),
        (1.0, "point", "1 point"),
        (0.5, "point", "0.5 points"),
        (1200, "call", "1,200 calls"),
        (2, "reply", "2 replies"),
        (2, "retry", "2 retries"),
        (2, "trajectory", "2 trajectories"),
        (2, "key", "2 keys"),
        (2, "more task", "2 more tasks"),
    ],
)
def test_a_noun_bends_with_its_count(n: float, noun: str, said: str) -> None:
    assert counted(n, noun) == said
