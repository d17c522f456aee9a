from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from xspec.rehearsal.draws import pick, token, uniform

parts = st.lists(st.text(max_size=5) | st.integers(-9, 10**9), min_size=1, max_size=5)


def test_draws_never_change() -> None:
    assert uniform("settings", "execution", 3, "task", 0, 1, "fault") == 0.1292736233007331
    assert token("execution", 0, "task") == "23add4bacefcc7c7dd905d78"


@given(parts)
def test_draws_lie_in_the_unit_interval(values: list[str | int]) -> None:
    assert 0 <= uniform(*values) < 1
    assert 0 <= pick(3, *values) < 3


@given(parts, parts)
def test_other_parts_give_other_draws(one: list[str | int], other: list[str | int]) -> None:
    assert (uniform(*one) == uniform(*other)) == (one == other)


def test_draws_are_uniform_and_independent() -> None:
    draws = [uniform("s", "e", 0, f"task_{i}", step, "flip") for i in range(500) for step in range(10)]
    counts = [sum(low <= draw < low + 0.1 for draw in draws) for low in [i / 10 for i in range(10)]]
    assert sum((count - 500) ** 2 / 500 for count in counts) < 27.9  # chi-square, 9 degrees, 0.1%
    together = sum(a < 0.5 and b < 0.5 for a, b in pairwise(draws))
    assert abs(together / len(draws) - 0.25) < 0.025
