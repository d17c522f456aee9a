"""Events from rows: what the agent could see, what it could not, and arguments that were cut off."""

from typing import Any

from xspec.analysis.trajectory import Event, ToolCall
from xspec.report.steps import steps_of


def step(
    run: int, number: int, arguments: str, *, cut: bool = False, error: bool = False, told: str = "ok"
) -> dict[str, Any]:
    call = {"id": "1", "function": {"name": "pay", "arguments": arguments}}
    action = None if cut else {"name": "pay", "arguments": {"to": "x"}}
    return {
        "run": run,
        "task": "t",
        "take": 0,
        "step": number,
        "actions": [{"action": action, "error": cut or error}],
        "added": [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "1", "content": told},
        ],
    }


def attempt(run: int, number: int, error: str | None = None, **changes: Any) -> dict[str, Any]:
    return {
        "run": run,
        "task": "t",
        "take": 0,
        "step": number,
        "call": 0,
        "member": "a",
        "error": error,
        "drift": [],
    } | changes


def test_events_and_ledger(make: Any) -> None:
    trials = [make.trial(run, "t", "pass") for run in range(2)]
    cut = "error: the arguments are not valid JSON (…); nothing was done"
    found = steps_of(
        [
            step(0, 0, '{"to": "x"}'),
            step(0, 1, '{"to": "x"}', error=True, told="the tool timed out"),
            step(1, 0, '{"to": ', cut=True, told=cut),
            step(1, 1, '{"to": "x"}', error=True, told="no such account"),
            step(2, 0, "{}"),
        ],
        [
            attempt(0, 0, "rate_limited"),
            attempt(0, 0),
            attempt(1, 0, drift=["served_model: other"]),
            attempt(1, 0, take=1),
        ],
        trials,
    )
    first, second = found.by_trial[0, "t"], found.by_trial[1, "t"]
    assert [s.taken.call_event for s in first] == [Event.HIDDEN, Event.NONE]
    assert [s.taken.observation_event for s in first] == [Event.NONE, Event.VISIBLE]
    assert [s.taken.observation_event for s in second] == [Event.VISIBLE, Event.NONE]
    assert second[0].taken.calls == first[0].taken.calls == (ToolCall("pay", '{"to":"x"}'),)
    assert (found.calls, found.attempts, found.errors) == (2, 3, {"rate_limited": 1})
    assert [(e.run, e.step, e.notes) for e in found.drift] == [(1, 0, ("served_model: other",))]
    assert (2, "t") not in found.by_trial


def code_step(
    run: int, number: int, code: str, *calls: tuple[str, Any], error: bool = False, told: str = "ok"
) -> dict[str, Any]:
    entry: dict[str, Any] = {"action": {"code": code}, "error": error}
    if calls:
        entry["calls"] = [{"name": name, "arguments": arguments} for name, arguments in calls]
    reply = f"So be it.\n```python\n{code}\n```"
    return {
        "run": run,
        "task": "t",
        "take": 0,
        "step": number,
        "actions": [entry],
        "added": [
            {"role": "assistant", "content": reply},
            {"role": "user", "content": f"Output:\n{told}"},
        ],
    }


def chain(record: Any) -> list[tuple[str, str]]:
    return [tuple(call) for call in record.taken.calls]


def test_a_block_of_code_is_the_calls_it_made(make: Any) -> None:
    trials = [make.trial(run, "t", "pass") for run in range(2)]
    pay = ("bank.pay", {"to": "x", "amount": 3})
    steps = steps_of(
        [
            code_step(0, 0, "n = 1"),
            code_step(0, 1, "a = apis.bank.show()\napis.bank.pay(to='x', amount=3)", ("bank.show", {}), pay),
            code_step(
                1, 1, "print(apis.bank.show()); apis.bank.pay(amount=3, to='x')", ("bank.show", {}), pay
            ),
        ],
        [],
        trials,
    ).by_trial
    (alone, both), (same,) = steps[0, "t"], steps[1, "t"]
    assert chain(alone) == [("code", "n = 1")]
    assert chain(both) == [("bank.show", "{}"), ("bank.pay", '{"amount":3,"to":"x"}')] == chain(same)


def test_code_that_was_cut_off_stands_for_what_another_run_sent_whole(make: Any) -> None:
    trials = [make.trial(run, "t", "pass") for run in range(3)]
    told = "Execution failed.\nSyntaxError: '(' was never closed"
    first, cut, evaluated = (
        steps[0]
        for steps in steps_of(
            [
                code_step(0, 0, "apis.bank.pay(amount=3)", ("bank.pay", {"amount": 3})),
                code_step(1, 0, "apis.bank.pay(", error=True, told=told),
                code_step(2, 0, "apis.bank.show(); eval('(')", ("bank.show", {}), error=True, told=told),
            ],
            [],
            trials,
        ).by_trial.values()
    )
    assert chain(cut) == chain(first) == [("bank.pay", '{"amount":3}')]
    assert cut.taken.observation_event == Event.VISIBLE
    assert evaluated.taken.observation_event == Event.NONE, "the code itself did parse, and made calls"
