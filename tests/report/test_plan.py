"""`plan`: sizes, prices and what can be seen; wrong input in one line."""

import json
from typing import Any

import pytest

from xspec.cli import plan
from xspec.errors import UserError


@pytest.fixture(autouse=True)
def few_experiments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "_EXPERIMENTS", 300)


def planned(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert plan.main([*arguments, "--format", "json"]) == 0
    data: dict[str, Any] = json.loads(capsys.readouterr().out)
    return data


def test_fewer_failures_come_first_and_steadier_beside(capsys: pytest.CaptureFixture[str]) -> None:
    data = planned(capsys, "--k", "5", "--difference", "12")
    assert [one["change"] for one in data["plans"]] == ["fewer failures", "steadier"]
    first, second = data["plans"]
    # statistics: about 12 points can be seen with 92 tasks at k = 5; a steadier agent is seen with fewer tasks.
    assert first["at_hand"]["smallest_pp"] == pytest.approx(12, abs=1.5)
    assert first["needed"][0]["tasks"] == pytest.approx(92, abs=20)
    assert second["needed"][0]["tasks"] < first["needed"][0]["tasks"]
    assert first["needed"][0]["cost"] == {
        "trials": first["needed"][0]["tasks"] * 5 * 2,
        "calls": None,
        "prompt_tokens": None,
        "completion_tokens": None,
    }


def test_a_difference_out_of_reach_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    data = planned(capsys, "--k", "5", "--difference", "60")
    assert {need["reason"] for one in data["plans"] for need in one["needed"]} == {"unreachable"}
    assert plan.main(["--k", "5", "--difference", "60"]) == 0
    assert "no effect on these tasks makes so large a difference" in capsys.readouterr().out


def test_costs_that_are_not_known_have_no_column(capsys: pytest.CaptureFixture[str]) -> None:
    assert plan.main(["--k", "3,5", "--difference", "15", "--arms", "1"]) == 0
    shown = capsys.readouterr().out
    assert "trials, 1 arm" in shown
    assert "?" not in shown
    assert "tokens are known only from a stored execution" in shown
    assert "At hand (92 tasks, k = 5)" in shown
    assert "more runs need not mean fewer tasks" in shown


def test_mean_has_one_assumption(capsys: pytest.CaptureFixture[str]) -> None:
    data = planned(capsys, "--metric", "mean", "--k", "3", "--mean", "60", "--tasks", "50")
    assert [one["change"] for one in data["plans"]] == ["fewer failures"]
    assert data["plans"][0]["at_hand"]["tasks"] == 50


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--k", "1"], "with one run there is no gap"),
        (["--k", "x"], "--k x"),
        (["--difference", "0"], "--difference"),
        (["--mean", "101"], "--mean"),
        (["--mean", "70", "--from", "xs-1"], "give one of them"),
        (["--tasks", "0"], "--tasks 0: give 1 to 10,000"),
        (["--tasks", "100000000"], "--tasks"),
        (["--cluster-size", "100000"], "--cluster-size 100000: give 1 to 100"),
        (["--contrasts", "1000000000"], "--contrasts"),
        (["--mean", "50", "--spread", "nan"], "--spread"),
    ],
)
def test_wrong_input_is_one_line(arguments: list[str], said: str) -> None:
    with pytest.raises(UserError, match=said) as error:
        plan.main(arguments)
    assert "\n" not in str(error.value)
