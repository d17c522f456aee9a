"""Blocks of code: written as a reply, read again off the history, cut so that nothing of them can be run."""

import ast
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xspec.agents.code_react import first_block
from xspec.rehearsal.address import COMPLETIONS, TrialAddress, member_key, trial_path
from xspec.rehearsal.code import Block, as_reply, block_in, cut_off, parses
from xspec.rehearsal.config import RehearsalConfig
from xspec.rehearsal.guide import Coverage, coverage_of
from xspec.rehearsal.scripts import Progress, TaskScript, progress_of
from xspec.rehearsal.simulator import Simulator

LOOK, PAY, END, FAIL, READ = (
    "accounts = apis.bank.list_accounts()\nprint(accounts)",
    "for name in accounts:\n    apis.bank.send_money(to=name, amount=3)\n",
    'apis.supervisor.complete_task(status="success")',
    'apis.supervisor.complete_task(status="fail")',
    "print(apis.bank.get_balance())",
)
PLAIN: dict[str, Any] = {
    "instruction": "Pay.",
    "calls": [{"code": LOOK}, {"code": PAY}, {"code": END}],
    "answer": "",
    "commit": 2,
    "give_up": {"code": FAIL},
    "detour": {"code": READ},
}
SCRIPT = TaskScript.of("t", PLAIN)


def said(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def test_the_agent_finds_the_block_that_the_simulated_model_wrote() -> None:
    for code in (LOOK, PAY.strip(), END, "x = 1\n\n\ny = '`'"):
        assert first_block(as_reply(code)) == (as_reply(code), code)
        assert block_in(as_reply(code)) == code


def test_progress_is_read_off_the_blocks() -> None:
    outputs = {"role": "user", "content": "Output:\ndone"}
    messages = [{"role": "user", "content": "Pay."}, said(f"I look.\n{as_reply(LOOK)}"), outputs]
    assert progress_of(SCRIPT, messages) == Progress(done=1, detoured=False, garbled=False, step=1)
    aside = [*messages, said(as_reply(READ))]
    assert progress_of(SCRIPT, aside) == Progress(done=1, detoured=True, garbled=False, step=2)
    cut = [*aside, said(as_reply("for name in"))]
    assert progress_of(SCRIPT, cut) == Progress(done=1, detoured=True, garbled=True, step=3)
    again = [*cut, said(as_reply(PAY)), said("I am done."), said(as_reply(END))]
    assert progress_of(SCRIPT, again) == Progress(done=3, detoured=False, garbled=False, step=6)


def test_a_detour_is_never_the_due_block() -> None:
    assert [SCRIPT.detours_at(point) for point in range(4)] == [[Block.of({"code": READ})]] * 3 + [[]]
    same = TaskScript.of("t", {**PLAIN, "detour": {"code": LOOK}})
    assert [len(same.detours_at(point)) for point in range(3)] == [0, 1, 1]
    assert TaskScript.of("t", {**PLAIN, "detour": None}).detours_at(0) == []


@given(st.sampled_from([LOOK, PAY, END, FAIL, READ, "x", "pass", "'''\na\n'''", "# no\nx = 1"]), st.data())
def test_what_is_cut_off_never_runs(code: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(1, max(1, len(code) - 1)))
    cut = cut_off(code, at)
    with pytest.raises(SyntaxError):
        ast.parse(cut)
    assert code.startswith(cut) or cut == f"{code}("


def test_a_rule_names_an_api_by_its_own_name() -> None:
    apis = frozenset({"list_accounts", "send_money", "complete_task"})
    assert [sorted(call.names) for call in SCRIPT.calls] == [
        ["list_accounts"],
        ["send_money"],
        ["complete_task"],
    ]
    for rule in (
        "Call bank.send_money last.",
        "Use apis.bank.send_money(to=…) with care.",
        "`send_money` is final.",
    ):
        coverage = coverage_of(f"Be good.\n\n## Guidelines\n- {rule}", apis)
        assert coverage == Coverage(True, frozenset({"send_money"}))
        assert [coverage.covers(SCRIPT.names_at(point)) for point in range(4)] == [False, True, False, False]
    assert coverage_of("Be good.\n\n## Guidelines\n- Read the docs.", apis).covers(SCRIPT.names_at(0))


@pytest.mark.parametrize(
    "change",
    [
        {"give_up": None},
        {"give_up": {}},
        {"calls": [{"code": "for"}]},
        {"calls": [{"code": ""}]},
        {"calls": [{"code": 3}]},
        {"calls": [{"code": LOOK}, {"name": "pay", "arguments": {}}]},
        {"calls": [{"code": "x = '```'"}]},
        {"detour": {"code": "("}},
    ],
)
def test_solutions_by_code_have_their_form(change: dict[str, Any]) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        TaskScript.of("t", {**PLAIN, **change})


def test_anything_can_be_asked_whether_it_parses() -> None:
    assert parses("x = '\\d'"), "a warning is no fault"
    assert not parses("x = \0")
    assert not parses("(" * 10_000)


def test_giving_up_is_never_garbled(member: Any) -> None:
    """Thought better of after a fault, it would let a trial pass that was meant to fail."""
    plain = member(garbled_arguments=1.0, replan=1.0)
    key = member_key(plain)
    simulator = Simulator(RehearsalConfig.of({"members": {key: plain}, "tasks": {"t": PLAIN}}))
    path = trial_path(TrialAddress("ex", key, 0, "t")) + COMPLETIONS

    def reply_to(*messages: dict[str, Any]) -> str:
        asked = {"model": plain["model"], "messages": [{"role": "user", "content": "Pay."}, *messages]}
        body = simulator.reply("POST", path, orjson.dumps(asked)).body
        return str(orjson.loads(body)["choices"][0]["message"]["content"])

    cut = block_in(reply_to())
    assert cut is not None
    assert not parses(cut)
    assert block_in(reply_to(said(as_reply(cut)))) == FAIL
    assert simulator.tally.plain()["faults"] == {"garbled_arguments": 1}
