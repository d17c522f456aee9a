"""Body fields that the spec fixes: how a request opens, and how the guard compares one with the spec.

Both are made from the models' own fields, so that a sampling field added later is sent and guarded without a
line here.
"""

import json
from collections.abc import Mapping
from typing import Any

import orjson

from xspec.errors import SpecDrift
from xspec.spec.members import Member
from xspec.spec.sampling import SamplingSpec

ABSENT = "absent"
_ABSENT = object()


def fixed_fields(member: Member, sampling: SamplingSpec) -> dict[str, Any]:
    """Every body field but messages and what is pinned by the trial, as plain data, without null sampling fields."""
    extra = (member.extra_body if member.kind == "openai" else None) or {}
    chosen = {name: getattr(sampling, name) for name in SamplingSpec.model_fields}
    sent = {name: value for name, value in chosen.items() if value is not None}
    fields: dict[str, Any] = orjson.loads(orjson.dumps({"model": member.model, **sent, **extra}))
    return fields


def opening(fields: dict[str, Any]) -> bytes:
    """The start of a body, up to where messages follow."""
    return orjson.dumps(fields)[:-1] + b","


def parse(body: bytes) -> dict[str, Any]:
    """The body as data. Raises SpecDrift if a byte of it escaped the parse.

    The comparison with its own re-serialisation is what makes parsing trustworthy: a key given twice, at any
    depth, is dropped by the parse and so missing from the re-serialisation, and anything else that one reader
    could take differently from another (spaces, escapes, 1.0 for 1) makes bytes that this writer never makes.
    """
    try:
        live = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise SpecDrift("body", "JSON", "bytes that are not JSON") from None
    if type(live) is not dict:
        raise SpecDrift("body", "a JSON object", type(live).__name__)
    if orjson.dumps(live) != body:
        raise SpecDrift("body", "one spelling, no key twice", _difference(body))
    return live


def compare_fields(live: dict[str, Any], fixed: dict[str, Any], pinned: Mapping[str, bool]) -> None:
    """Raise SpecDrift unless `live` is the fixed fields, messages, and each `pinned` field iff the trial has it."""
    for name, frozen in fixed.items():
        value = live.get(name, _ABSENT)
        if value is _ABSENT:
            raise SpecDrift(f"body.{name}", frozen, ABSENT)
        if not same(frozen, value):
            raise SpecDrift(f"body.{name}", frozen, brief(value))
    if "messages" not in live:
        raise SpecDrift("body.messages", "messages", ABSENT)
    for name, there in pinned.items():
        if (name in live) != there:
            raise SpecDrift(f"body.{name}", *((name, ABSENT) if there else (ABSENT, name)))
    known = {*fixed, "messages", *(name for name, there in pinned.items() if there)}
    if len(live) != len(known):
        name = next(name for name in live if name not in known)
        raise SpecDrift(f"body.{name}", ABSENT, brief(live[name]))


def same(frozen: Any, live: Any) -> bool:
    """Equal as JSON: 0 and 0.0 are one number, but true is not 1."""
    if isinstance(frozen, bool) or isinstance(live, bool):
        return frozen is live
    if isinstance(frozen, dict) and isinstance(live, dict):
        return frozen.keys() == live.keys() and all(same(frozen[key], live[key]) for key in frozen)
    if isinstance(frozen, list) and isinstance(live, list):
        return len(frozen) == len(live) and all(map(same, frozen, live))
    return bool(frozen == live)


def brief(value: Any) -> Any:
    """A value fit to be shown in a message: a long one is its text, or its JSON, cut."""
    shown = value if isinstance(value, str) else json_text(value)
    return value if len(shown) <= 120 else shown[:119] + "…"


def json_text(value: Any) -> str:
    """JSON of a value, for people: numbers in all their digits, texts in their own letters."""
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "(nested too deeply to be shown)"


def _difference(body: bytes) -> str:
    twice: list[str] = []

    def note(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        twice.extend(name for name in names if names.count(name) > 1)
        return dict(pairs)

    json.loads(body, object_pairs_hook=note)
    return f"key {twice[0]!r} twice" if twice else "another spelling"
