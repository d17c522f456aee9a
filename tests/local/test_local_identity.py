"""What of a local model and of the JSON choice is identity, and that specs without them keep their ids."""

import copy
import json
from typing import Any

import pytest
from pydantic import ValidationError

from xspec.spec.models import ExperimentSpec

LOCAL: dict[str, Any] = {
    "kind": "local",
    "name": "local",
    "model": "SmolLM2-135M-Instruct",
    "gguf_sha256": "b" * 64,
    "n_ctx": 2048,
    "n_parallel": 1,
    "threads": 1,
    "cache_prompt": False,
}
OTHER = {
    "name": "other",
    "model": "SmolLM2-135M",
    "gguf_sha256": "c" * 64,
    "n_ctx": 4096,
    "n_parallel": 4,
    "threads": 2,
    "cache_prompt": True,
    "expect_served": "x",
}


def build(plain: dict[str, Any]) -> ExperimentSpec:
    return ExperimentSpec.model_validate_json(json.dumps(plain))


@pytest.fixture
def local(plain: dict[str, Any]) -> dict[str, Any]:
    """A spec of the local model with the JSON choice."""
    changed = copy.deepcopy(plain)
    changed["route"]["members"] = [dict(LOCAL)]
    changed["agent"] |= {"kind": "json_choice", "max_calls": 1}
    return changed


def test_golden_id(local: dict[str, Any]) -> None:
    """If this fails, stored ids would be renamed: raise the scheme's version instead of editing the id."""
    assert build(local).id == "xs-bc394cf104f32c95"


@pytest.mark.parametrize("field", OTHER)
def test_every_setting_of_the_model_is_identity(local: dict[str, Any], field: str) -> None:
    before = build(local).id
    local["route"]["members"][0][field] = OTHER[field]
    assert build(local).id != before


@pytest.mark.parametrize(("field", "value"), [("max_calls", 2), ("max_calls", None), ("max_steps", 5)])
def test_every_setting_of_the_agent_is_identity(local: dict[str, Any], field: str, value: Any) -> None:
    before = build(local).id
    local["agent"][field] = value
    assert build(local).id != before


def test_the_tool_loop_knows_no_max_calls(plain: dict[str, Any]) -> None:
    plain["agent"]["max_calls"] = 1
    with pytest.raises(ValidationError, match="max_calls"):
        build(plain)


@pytest.mark.parametrize(
    ("field", "value"),
    [("n_parallel", 0), ("n_ctx", 1), ("threads", "2"), ("gguf_sha256", "b179"), ("model", "a/b")],
)
def test_what_is_no_setting(local: dict[str, Any], field: str, value: Any) -> None:
    local["route"]["members"][0][field] = value
    with pytest.raises(ValidationError, match=field):
        build(local)


def test_one_response_format(plain: dict[str, Any]) -> None:
    plain["route"]["members"][0]["extra_body"] = {"response_format": {"type": "json_object"}}
    build(plain)
    plain["agent"]["kind"] = "json_choice"
    with pytest.raises(ValidationError, match="response_format"):
        build(plain)
