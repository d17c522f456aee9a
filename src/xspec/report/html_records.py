"""The rows of the page's tables that show what was recorded: failures, drift, locks, specs."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from xspec.report.model import Group
from xspec.report.sentences import arm_names

_MOST_DRIFT = 200
_LOCAL = ("bindings", "execution_id", "spec_id", "stint", "must_match.keys")


def failure_rows(group: Group) -> list[dict[str, Any]]:
    """Causes of the trials that did not pass, by arm."""
    names = arm_names(group)
    return [
        {"arm": names[arm.spec_id], "cause": cause} for arm in group.arms for cause in arm.statistics.failures
    ]


def drift_rows(group: Group) -> dict[str, Any]:
    """Drift events, at most 200, and how many there are."""
    names = arm_names(group)
    events = [
        {"arm": names[arm.spec_id], "event": event}
        for arm in group.arms
        if arm.record.steps is not None
        for event in arm.record.steps.drift
    ]
    return {"total": len(events), "rows": events[:_MOST_DRIFT]}


def lock_rows(group: Group) -> list[dict[str, Any]]:
    """Fields of the locks that are not the same in every stint of every arm, with each stint's value."""
    names = arm_names(group)
    stints = [
        (f"{names[arm.spec_id]}, stint {number}", dict(_flat(lock, "")))
        for arm in group.arms
        for number, lock in enumerate(arm.record.locks, start=1)
    ]
    fields = sorted({field for _, lock in stints for field in lock})
    rows = []
    for field in fields:
        values = [(stint, lock.get(field, "(absent)")) for stint, lock in stints]
        if len({value for _, value in values}) > 1 and not field.startswith(_LOCAL):
            rows.append({"field": field, "values": values})
    return rows


def spec_texts(group: Group) -> list[dict[str, str]]:
    """The spec of each arm in words of JSON. A long task list is told by its ends."""
    names = arm_names(group)
    found = []
    for arm in group.arms:
        plain = arm.record.spec.plain()
        tasks = plain["benchmark"]["tasks"]
        if len(tasks) > 6:
            plain["benchmark"]["tasks"] = [*tasks[:3], f"… {len(tasks) - 6} more", *tasks[-3:]]
        text = json.dumps(plain, indent=1, ensure_ascii=False)
        found.append({"name": names[arm.spec_id], "spec_id": arm.spec_id, "text": text})
    return found


def _flat(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping) and value:
        for key, below in value.items():
            yield from _flat(below, f"{path}.{key}" if path else str(key))
    else:
        yield path, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
