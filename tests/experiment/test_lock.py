"""The lock of a stint: differences are named, and only in what must match."""

import copy
from typing import Any

import pytest

from xspec.experiment.lock import LockChanged, differences, key_fingerprints, make_lock, refuse_change
from xspec.spec.models import ExperimentSpec

KEY = "plain-words-of-a-key"


@pytest.fixture
def lock(spec: ExperimentSpec, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setenv("XSPEC_TEST_KEY", KEY)
    return make_lock(
        spec,
        execution_id="ex-1",
        stint=1,
        workers=4,
        launcher="basic",
        worker_package={"agentdojo": "0.1.35"},
        bindings={},
    )


def test_same_surroundings_do_not_differ(lock: dict[str, Any]) -> None:
    other = {**copy.deepcopy(lock), "stint": 2, "workers": 9, "commit": "elsewhere", "bindings": {"a": "x"}}
    assert differences(lock, other) == []
    refuse_change(lock, other)


@pytest.mark.parametrize("part", ["python", "platform", "code", "manifest", "packages", "worker", "keys"])
def test_whatever_must_match_is_compared(lock: dict[str, Any], part: str) -> None:
    other = copy.deepcopy(lock)
    value = other["must_match"][part]
    if isinstance(value, dict):
        name = next(iter(value))
        value[name] = "other"
        part = f"{part}.{name}"
    else:
        other["must_match"][part] = "other"
    (line,) = differences(lock, other)
    assert line.startswith(f"{part}: ")
    assert line.endswith(", other now")
    with pytest.raises(LockChanged, match="--accept-lock-change") as caught:
        refuse_change(lock, other)
    assert line in str(caught.value)


def test_package_that_came_or_went_is_a_difference(lock: dict[str, Any]) -> None:
    other = copy.deepcopy(lock)
    del other["must_match"]["worker"]["agentdojo"]
    assert differences(lock, other) == ["worker.agentdojo: 0.1.35 then, None now"]


def test_nothing_that_must_match_is_left_out_of_the_test(lock: dict[str, Any]) -> None:
    assert set(lock["must_match"]) == {"python", "platform", "code", "manifest", "packages", "worker", "keys"}


def test_lock_holds_fingerprints_and_no_key(lock: dict[str, Any], spec: ExperimentSpec) -> None:
    assert KEY not in repr(lock)
    assert lock["must_match"]["keys"] == key_fingerprints(spec, {"XSPEC_TEST_KEY": KEY})
    assert key_fingerprints(spec, {"XSPEC_TEST_KEY": KEY + "2"}) != lock["must_match"]["keys"]
