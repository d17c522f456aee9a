"""The simulated model asked for samples and for guidelines."""

import json
from typing import Any

import pytest

from xspec.rehearsal.analyst import asks_for_guidelines, choices_asked, guidelines, sample_turns
from xspec.rehearsal.behaviour import Player
from xspec.rehearsal.guide import UNGUIDED, Coverage
from xspec.rehearsal.scripts import TaskScript
from xspec.spec.members import RehearsalBehaviour

TOOLS = ("get_balance", "get_iban", "read_file", "send_money")
CALLS = [
    {"name": "read_file", "arguments": {"path": "bill.txt"}},
    {"name": "get_iban", "arguments": {}},
    {"name": "send_money", "arguments": {"amount": 10}},
]


def player(**changes: Any) -> Player:
    settings: dict[str, Any] = {
        "unstable_tasks": 1,
        "hopeless_tasks": 0,
        "flip_alpha": 50,
        "flip_beta": 50,
        "detour": 0.9,
        "guide_effect": 1,
        "replan": 0.9,
        "difficulty_seed": 1,
    }
    return Player(RehearsalBehaviour.model_validate(settings | changes))


def script(task: str = "t") -> TaskScript:
    return TaskScript.of(task, {"instruction": "Pay.", "calls": CALLS, "answer": "Paid.", "commit": 2})


def said(count: int) -> list[dict[str, Any]]:
    """The messages up to the point where `count` calls of the solution are made."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": "S"}, {"role": "user", "content": "Pay."}]
    for i, call in enumerate(CALLS[:count]):
        function = {"name": call["name"], "arguments": json.dumps(call["arguments"])}
        called = [{"id": f"c{i}", "type": "function", "function": function}]
        messages.append({"role": "assistant", "content": None, "tool_calls": called})
        messages.append({"role": "tool", "tool_call_id": f"c{i}", "content": "ok"})
    return messages


def names(
    who: Player, what: TaskScript, count: int, n: int = 200, coverage: Coverage = UNGUIDED
) -> list[str]:
    turns = sample_turns(who, what, said(count), ("ex-1", 0), coverage, TOOLS, n)
    return [turn.call.name if turn.call is not None else turn.text for turn in turns]  # type: ignore[misc]


def test_samples_vary_at_the_unstable_point_and_nowhere_else() -> None:
    who, what = player(), script()
    point = who.difficulty(what).point
    due = ["read_file", "get_iban", "send_money", "Paid."]
    for count in range(4):
        found = set(names(who, what, count))
        assert (len(found) == 2) == (count == point), count
        assert due[count] in found


def test_the_share_of_flipped_samples_is_the_flip_chance() -> None:
    who, what = player(), script()
    difficulty = who.difficulty(what)
    assert difficulty.point is not None
    found = names(who, what, difficulty.point, n=4000)
    due = CALLS[difficulty.point]["name"]
    assert sum(name != due for name in found) / 4000 == pytest.approx(difficulty.flip, abs=0.03)


def test_a_guide_that_covers_the_point_steadies_it() -> None:
    who, what = player(), script()
    point = who.difficulty(what).point
    assert point is not None
    assert len(set(names(who, what, point, coverage=Coverage(True)))) == 1


def test_a_hopeless_task_is_wrong_every_time_and_so_no_unsteady_one() -> None:
    who, what = player(unstable_tasks=0, hopeless_tasks=1), script()
    point = who.difficulty(what).point
    assert point is not None
    found = set(names(who, what, point))
    assert len(found) == 1
    assert found != {CALLS[point]["name"]}


@pytest.mark.parametrize(
    ("n", "choices"), [(None, 1), (1, 1), (5, 5), (10_000, 128), ("5", 1), (True, 1), (-3, 1)]
)
def test_choices_asked(n: Any, choices: int) -> None:
    assert choices_asked({} if n is None else {"n": n}) == choices


PROMPT = """Analyse this. If there is no lesson, return {"guidelines": []}.
# Agent Trajectory
Task: Pay.
Step 1 - Agent tool calls:
- read_file(path='bill.txt')
Step 2 [\u26a0 HIGH UNCERTAINTY: 0.6] - Agent tool calls:
- send_money(amount=10)
- get_iban()
Step 3 - Agent reasoning:
```python
print(apis.bank.show_balance(access_token=token))
```
# Your Analysis
Step by step, call nothing( here.
"""


def contents(prompt: str) -> list[str]:
    return [one["trigger"] for one in json.loads(guidelines(prompt, "t"))["guidelines"]]


def test_guidelines_name_the_tools_of_the_marked_steps() -> None:
    assert contents(PROMPT) == [
        "The next part of the request needs send_money.",
        "The next part of the request needs get_iban.",
    ]
    moved = PROMPT.replace(" [\u26a0 HIGH UNCERTAINTY: 0.6]", "").replace(
        "Step 3", "Step 3 [\u26a0 ELEVATED UNCERTAINTY: 0.1]"
    )
    assert contents(moved) == ["The next part of the request needs show_balance."]


def test_without_marks_one_step_is_guessed() -> None:
    assert len(contents(PROMPT.replace(" [\u26a0 HIGH UNCERTAINTY: 0.6]", ""))) in (1, 2)
    assert contents('Say "guidelines".') == []


def test_what_asks_for_guidelines() -> None:
    user = {"role": "user", "content": PROMPT}
    assert asks_for_guidelines([user]) == PROMPT
    assert asks_for_guidelines([{"role": "system", "content": "S"}, user]) is None
    assert asks_for_guidelines([{"role": "user", "content": "Pay."}]) is None
