"""One value, one spelling, one id; and ids that never change."""

import json
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xspec.errors import SpecError
from xspec.spec.canonical import canonical_bytes, digest_of, short_id

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4)
    ),
    max_leaves=20,
)


def shuffled(value: object, seed: int) -> object:
    """The same value with every mapping in another order, and integers as floats where they are equal."""
    if isinstance(value, dict):
        items = [(key, shuffled(item, seed)) for key, item in value.items()]
        random.Random(seed).shuffle(items)
        return dict(items)
    if isinstance(value, list):
        return tuple(shuffled(item, seed) for item in value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53:
        return float(value)
    return value


@given(JSON, st.integers(0, 5))
def test_equal_values_have_equal_bytes_in_any_order_and_number_type(value: object, seed: int) -> None:
    assert canonical_bytes(shuffled(value, seed)) == canonical_bytes(value)


@given(JSON)
def test_bytes_read_back_have_the_same_bytes(value: object) -> None:
    data = canonical_bytes(value)
    assert canonical_bytes(json.loads(data)) == data


@given(JSON, JSON)
def test_different_bytes_mean_different_values(a: object, b: object) -> None:
    assert (canonical_bytes(a) == canonical_bytes(b)) == (typed(a) == typed(b))


def typed(value: object) -> object:
    """Equality that tells True from 1, which Python's does not."""
    if isinstance(value, dict):
        return ("dict", frozenset((key, typed(item)) for key, item in value.items()))
    if isinstance(value, list | tuple):
        return ("list", tuple(typed(item) for item in value))
    return (
        "bool" if isinstance(value, bool) else "number" if isinstance(value, int | float) else "other",
        value,
    )


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"b": 1, "a": 0.0}, b'{"a":0,"b":1}'),
        ([-0.0, 1e22, 1e-7, 0.1], b"[0,10000000000000000000000,1e-07,0.1]"),
        ({"é": "ü\n"}, '{"é":"ü\\n"}'.encode()),
        ((True, None, 1), b"[true,null,1]"),
    ],
)
def test_spelling(value: object, expected: bytes) -> None:
    assert canonical_bytes(value) == expected


@pytest.mark.parametrize(
    "value", [math.nan, math.inf, [-math.inf], {"a": {1: 2}}, {"a": b"x"}, {"a": {1, 2}}, "\ud800"]
)
def test_what_has_no_canonical_bytes_is_refused(value: object) -> None:
    with pytest.raises(SpecError):
        canonical_bytes(value)


def test_golden_digest_and_id() -> None:
    assert digest_of(b"xspec") == "sha256:" + GOLDEN
    assert short_id("xs", b"xspec") == "xs-" + GOLDEN[:16]


GOLDEN = "e6df92c870eb807a47f678d61d8268eab02d663a40bcaafd876b6a184e2d60bd"
