import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from xspec.rehearsal.guide import UNGUIDED, coverage_of, system_text
from xspec.rehearsal.scripts import Progress, TaskScript, progress_of

SCRIPT = TaskScript.of(
    "t",
    {
        "instruction": "Pay.",
        "calls": [
            {"name": "get_balance", "arguments": {}},
            {"name": "read_file", "arguments": {"path": "bill", "lines": 3}},
            {"name": "get_balance", "arguments": {}},
            {"name": "send_money", "arguments": {"to": "Ä", "amount": 10.5}},
        ],
        "answer": "Paid.",
        "commit": 3,
    },
)


def made(name: str, arguments: str) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": function}]}


def test_progress_follows_the_solution_however_its_arguments_are_spelt() -> None:
    messages = [
        {"role": "user", "content": "Pay."},
        made("get_balance", " { } "),
        {"role": "tool", "content": "1"},
        made("read_file", json.dumps({"lines": 3.0, "path": "bill"})),
    ]
    assert progress_of(SCRIPT, messages) == Progress(done=2, detoured=False, garbled=False, step=2)


def test_other_and_garbled_calls_are_told_apart() -> None:
    assert progress_of(SCRIPT, [made("get_balance", "{}"), made("list_x", "{}")]).detoured
    garbled = progress_of(SCRIPT, [made("get_balance", "{}"), made("read_file", '{"pa')])
    assert garbled == Progress(done=1, detoured=False, garbled=True, step=2)
    assert not progress_of(SCRIPT, [made("get_balance", "{"), made("get_balance", "{}")]).garbled


def test_a_detour_repeats_an_earlier_read_that_is_not_due() -> None:
    assert SCRIPT.detours_at(0) == []
    assert SCRIPT.detours_at(1) == [SCRIPT.calls[0]]
    assert SCRIPT.detours_at(2) == [SCRIPT.calls[1]]
    assert SCRIPT.detours_at(3) == [SCRIPT.calls[0], SCRIPT.calls[1]]
    assert SCRIPT.detours_at(4) == []


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["role", "content", "tool_calls", "function", "name", "arguments", "text"]),
            inner | st.sampled_from(["assistant", "system", "user"]),
            max_size=4,
        )
    ),
)


@given(st.lists(json_values, max_size=4))
def test_any_messages_can_be_read(messages: list[Any]) -> None:
    progress = progress_of(SCRIPT, messages)
    assert 0 <= progress.done <= len(SCRIPT.calls)
    assert isinstance(system_text(messages), str)


def test_a_guide_covers_the_tools_its_rules_name() -> None:
    system = "Be good.\n\n## Guidelines\n- Call get_balance first.\n- Be sure."
    coverage = coverage_of(system, ("get_balance", "send_money"))
    assert coverage.covers(frozenset({"get_balance"}))
    assert not coverage.covers(frozenset({"send_money"}))
    assert not coverage.covers(frozenset())


def test_a_guide_that_names_no_offered_tool_covers_everything() -> None:
    coverage = coverage_of("Be good.\n\n## Guidelines\n- Never call get_balances.", ("get_balance",))
    assert coverage.covers(frozenset({"get_balance"}))
    assert coverage.covers(frozenset())


def test_without_rules_there_is_no_guide() -> None:
    assert coverage_of("Be good, see ## Guidelines\n- x", ("a",)) == UNGUIDED
    assert coverage_of("Be good.\n## Guidelines\nnone", ("a",)) == UNGUIDED
    assert not UNGUIDED.covers(frozenset("a"))


def test_system_text_reads_strings_and_parts() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    messages = [{"role": "system", "content": parts}, {"role": "user", "content": "u"}]
    assert system_text([*messages, {"role": "developer", "content": "c"}]) == "ab\nc"
