"""A spec as flat names and texts: `route.retry.max_attempts` = `3`."""

from collections.abc import Iterator, Mapping
from typing import Any

from xspec.spec.canonical import canonical_bytes, digest_of
from xspec.spec.models import ExperimentSpec

MAX_TEXT = 5_000
"""MLflow cuts a param's value at 6,000 characters; what is longer is named by its digest."""


def flat_spec(spec: ExperimentSpec) -> dict[str, str]:
    """Every field of the spec by its path, members by their names. The task list is a count and a digest."""
    plain = spec.plain()
    tasks = plain["benchmark"].pop("tasks")
    plain["route"]["members"] = {member.pop("name"): member for member in plain["route"]["members"]}
    flat = dict(_leaves(plain, ""))
    flat["benchmark.tasks"] = (
        ", ".join(tasks)
        if len(tasks) <= 5
        else f"{len(tasks)} tasks ({digest_of(canonical_bytes(tasks))[:23]})"
    )
    return {name: _short(value) for name, value in sorted(flat.items())}


def _leaves(value: Any, where: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(item, f"{where}.{key}" if where else str(key))
    elif isinstance(value, str):
        yield where, value
    elif isinstance(value, list | tuple):
        yield where, ", ".join(item if isinstance(item, str) else _text(item) for item in value)
    else:
        yield where, _text(value)


def _text(value: Any) -> str:
    return canonical_bytes(value).decode()


def _short(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{len(text)} characters ({digest_of(text.encode())[:23]})"
