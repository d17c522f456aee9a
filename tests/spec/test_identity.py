"""Each field that is identity changes the id, nothing else does, and ids never change by themselves."""

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import ValidationError

from xspec.spec.canonical import canonical_bytes
from xspec.spec.models import ExperimentSpec
from xspec.spec.sampling import SamplingSpec


def build(plain: dict[str, Any]) -> ExperimentSpec:
    return ExperimentSpec.model_validate_json(json.dumps(plain))


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from leaves(item, (*path, i))
    else:
        yield path


def changed(plain: dict[str, Any], path: tuple[Any, ...]) -> dict[str, Any]:
    """The plain spec with another valid value at one leaf."""
    copied = copy.deepcopy(plain)
    at = copied
    for part in path[:-1]:
        at = at[part]
    old = at[path[-1]]
    if isinstance(old, bool):
        new: Any = not old
    elif isinstance(old, int | float):
        new = old - 1 if path[-1] in ("top_p",) or old >= 500 else old + 1
        new = 0.5 if path[-1] == "top_p" else new
    elif old in ("invalidate", "record"):
        new = "record" if old == "invalidate" else "invalidate"
    elif str(old).startswith("sha256:"):
        new = "sha256:" + "0" * 64
    else:
        new = f"{old}x"
    at[path[-1]] = new
    return copied


FIXED = {
    ("scheme",),
    ("agent", "kind"),
    ("route", "mode"),
    ("route", "members", 0, "kind"),
    ("guide", "kind"),
}


def test_every_field_is_identity(plain: dict[str, Any]) -> None:
    original = build(plain).id
    seen = {original}
    for path in leaves(plain):
        if path in FIXED:
            continue
        other = build(changed(plain, path)).id
        assert other not in seen, path
        seen.add(other)


def test_condition_leaves_out_k_and_tasks_and_nothing_else(plain: dict[str, Any]) -> None:
    original = build(plain).condition_id
    for path in leaves(plain):
        if path in FIXED:
            continue
        same = build(changed(plain, path)).condition_id == original
        assert same == (path == ("k",) or path[:2] == ("benchmark", "tasks")), path


def test_key_order_and_number_type_do_not_matter(plain: dict[str, Any]) -> None:
    turned = dict(reversed(list(plain.items())))
    turned["sampling"] = dict(reversed(list({**plain["sampling"], "temperature": 0.0, "top_p": 1.0}.items())))
    assert build(turned).id == build(plain).id


@pytest.mark.parametrize("field", sorted(SamplingSpec.model_fields))
def test_a_null_field_has_the_bytes_of_an_absent_one(plain: dict[str, Any], field: str) -> None:
    absent, null = copy.deepcopy(plain), copy.deepcopy(plain)
    absent["sampling"].pop(field, None)
    null["sampling"][field] = None
    assert build(absent).canonical() == build(null).canonical()
    assert field not in json.loads(build(null).canonical())["sampling"]


def test_bytes_read_back_are_the_same_spec(spec: ExperimentSpec) -> None:
    again = ExperimentSpec.model_validate_json(spec.canonical())
    assert again == spec
    assert again.canonical() == spec.canonical()
    assert canonical_bytes(json.loads(spec.canonical())) == spec.canonical()


def test_golden_ids(plain: dict[str, Any]) -> None:
    """If this fails, stored ids would be renamed: raise the scheme's version instead of editing the ids."""
    assert build(plain).id == "xs-e9e1d376287c826b"
    assert build(plain).condition_id == "xc-de8c94fae5616011"
    floating = copy.deepcopy(plain)
    floating["route"] |= {"mode": "floating", "granularity": "call", "seed": 0}
    floating["route"]["members"].append(
        {**plain["route"]["members"][0], "name": "second", "extra_body": {"a": [1, 2.5]}}
    )
    floating["guide"] = {"kind": "rules", "digest": "sha256:" + "1" * 64}
    floating["agent"]["tools"] = ["get_balance"]
    assert build(floating).id == "xs-d294f9e0dacec594"


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("k",), 0),
        (("k",), 2.5),
        (("k",), True),
        (("k",), "5"),
        (("sampling", "temperature"), "0"),
        (("sampling", "temperature"), -1),
        (("sampling", "bogus"), 1),
        (("bogus",), 1),
        (("route", "timeout_s"), -1),
        (("route", "timeout_s"), 0),
        (("route", "mode"), "floating"),
        (("route", "seed"), 3),
        (("route", "members", 0, "extra_body"), {"temperature": 1}),
        (("route", "members", 0, "api_key_env"), "not a name"),
        (("benchmark", "tasks"), []),
        (("benchmark", "tasks"), ["a", "a"]),
        (("benchmark", "manifest"), "sha256:12"),
        (("scheme",), 2),
        (("guide",), {"kind": "rules"}),
    ],
)
def test_what_is_no_valid_spec_is_refused_without_echo(
    plain: dict[str, Any], where: tuple[Any, ...], value: Any
) -> None:
    at: Any = plain
    for part in where[:-1]:
        at = at[part]
    at[where[-1]] = value
    with pytest.raises(ValidationError) as caught:
        build(plain)
    assert "input_value" not in str(caught.value)
