"""What two specs differ in, field by field, and whether they may be arms of one comparison.

Arms differ in factors alone: the guide, the route's mode, the route's members. `route.granularity` and
`route.seed` exist only on a floating route, so their coming and going with the mode is part of that factor;
two floating routes with different seeds differ in something else. Arms also share a member, else the
comparison is one of models.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from xspec.spec.models import ExperimentSpec

_FACTORS = ("guide", "route.mode", "route.members")
_FOLLOW_MODE = ("route.granularity", "route.seed")
_TASKS = "benchmark.tasks"
_MEMBERS = "route.members"
_NAMED = 5


class Absent(Enum):
    """A field that one of the specs doesn't have. Not the same as a null, which `extra_body` may hold."""

    ABSENT = "(absent)"

    def __str__(self) -> str:
        return self.value


ABSENT = Absent.ABSENT


@dataclass(frozen=True, slots=True)
class FieldDiff:
    """One field that differs. A value is plain data, or ABSENT.

    For `benchmark.tasks` the values are the tasks that only this spec has (both empty: another order). For
    `route.members` itself they are the member names of specs that share none.
    """

    field: str
    a: Any
    b: Any
    factor: bool

    def __str__(self) -> str:
        if self.field == _TASKS:
            return f"{self.field}: {_tasks_text(self.a, self.b)}"
        if self.field == _MEMBERS:
            return f"{self.field}: none in common ({', '.join(self.a)} | {', '.join(self.b)})"
        return f"{self.field}: {_shown(self.field, self.a)} → {_shown(self.field, self.b)}"


def diff_specs(a: ExperimentSpec, b: ExperimentSpec) -> list[FieldDiff]:
    """Every field that differs, by dotted path, sorted. Empty exactly when the ids are equal."""
    found: dict[str, tuple[Any, Any]] = {}
    left, right = a.plain(), b.plain()
    if left["benchmark"]["tasks"] != right["benchmark"]["tasks"]:
        found[_TASKS] = (
            _only(a.benchmark.tasks, b.benchmark.tasks),
            _only(b.benchmark.tasks, a.benchmark.tasks),
        )
    for plain in (left, right):
        del plain["benchmark"]["tasks"]
        plain["route"]["members"] = {member["name"]: member for member in plain["route"]["members"]}
    order_a, order_b = list(left["route"]["members"]), list(right["route"]["members"])
    if order_a != order_b and sorted(order_a) == sorted(order_b):
        found[f"{_MEMBERS}.(order)"] = order_a, order_b
    found.update((path, (x, y)) for path, x, y in _walk(left, right, ""))
    return [FieldDiff(path, x, y, _is_factor(path, x, y)) for path, (x, y) in sorted(found.items())]


def changed_tasks(a: Mapping[str, Any], b: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """What differs between two task manifests: ids of tasks that only one has or that are other tasks now, and parts
    beside the tasks (tools, package versions).
    """
    rows_a, rows_b = ({row["id"]: row for row in manifest["tasks"]} for manifest in (a, b))
    tasks = sorted(id_ for id_ in rows_a.keys() | rows_b.keys() if rows_a.get(id_) != rows_b.get(id_))
    parts = sorted(key for key in (a.keys() | b.keys()) - {"tasks"} if a.get(key) != b.get(key))
    return tasks, parts


def comparable(a: ExperimentSpec, b: ExperimentSpec) -> list[FieldDiff]:
    """What keeps two specs from being arms of one comparison; empty when nothing does.

    These are the differences that are no factors, and a `route.members` entry when the two share no member.
    """
    obstacles = [diff for diff in diff_specs(a, b) if not diff.factor]
    if not share_member(a, b):
        names = [m.name for m in a.route.members], [m.name for m in b.route.members]
        obstacles.append(FieldDiff(_MEMBERS, *names, factor=False))
    return sorted(obstacles, key=lambda diff: diff.field)


def share_member(a: ExperimentSpec, b: ExperimentSpec) -> bool:
    """Whether some member of `a` has the very settings of one of `b`. What it is called doesn't matter."""
    settings = [[m.model_dump(exclude={"name"}) for m in spec.route.members] for spec in (a, b)]
    return any(member in settings[1] for member in settings[0])


def _walk(a: Any, b: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        for key in a.keys() | b.keys():
            below = f"{path}.{key}" if path else key
            yield from _walk(a.get(key, ABSENT), b.get(key, ABSENT), below)
    elif not _same(a, b):
        yield path, a, b


def _same(a: Any, b: Any) -> bool:
    """Equal in canonical bytes: 0 and 0.0 are one value, 1 and True are two."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    return bool(a == b)


def _is_factor(path: str, a: Any, b: Any) -> bool:
    if path in _FOLLOW_MODE:
        return a is ABSENT or b is ABSENT
    return any(path == factor or path.startswith(f"{factor}.") for factor in _FACTORS)


def _only(tasks: tuple[str, ...], others: tuple[str, ...]) -> list[str]:
    known = set(others)
    return [task for task in tasks if task not in known]


def _tasks_text(removed: list[str], added: list[str]) -> str:
    changes = ((removed, "removed"), (added, "added"))
    parts = [f"{len(tasks)} {verb} ({_some(tasks)})" for tasks, verb in changes if tasks]
    return ", ".join(parts) or "the same tasks in another order"


def _some(names: list[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _shown(field: str, value: Any) -> str:
    if value is ABSENT:
        # An absent sampling or body field is one the request must not carry: say so in those words.
        sent = field.startswith("sampling.") or ".extra_body" in field
        return "(not sent)" if sent else str(ABSENT)
    if field.startswith(f"{_MEMBERS}.") and isinstance(value, Mapping) and "model" in value:
        return f"{value['kind']} {value['model']}"
    return "null" if value is None else repr(value)
