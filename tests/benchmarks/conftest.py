"""Benchmarks run in processes of their own, and none of them may outlive its test."""

from collections.abc import Iterator

import psutil
import pytest


@pytest.fixture(autouse=True)
def no_process_is_left() -> Iterator[None]:
    """Fixtures of other rooms may have processes here too, so only new ones count."""
    others = set(psutil.Process().children(recursive=True))
    yield
    assert set(psutil.Process().children(recursive=True)) <= others
