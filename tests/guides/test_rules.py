"""Rules in a guide's blob, and in a system message."""

import json

import pytest

from xspec.errors import SpecError
from xspec.guides.rule import Rule, plain_rules
from xspec.guides.rules import HEADING, guide_blob, rules_for, system_text


def blob(rules: list[str], assign: dict[str, list[int]] | None = None) -> bytes:
    return guide_blob(plain_rules(rules), assign)


def test_same_rules_have_the_same_blob_however_they_are_spaced() -> None:
    assert blob(["Be  careful.\n", "Ask."]) == blob(["Be careful.", "Ask."])
    assert blob(["Ask.", "Be careful."]) != blob(["Be careful.", "Ask."])


def test_bytes_of_a_plain_guide_stay_what_they_are() -> None:
    assert blob(["one", "two"]) == b'{"assign":{"*":[0,1]},"rules":[{"content":"one"},{"content":"two"}]}'


@pytest.mark.parametrize("rules", [[], [""], ["one", " \n"]])
def test_empty_rules_make_no_guide(rules: list[str]) -> None:
    with pytest.raises(SpecError, match="at least one rule"):
        blob(rules)


def contents(guide: dict[str, object], task: str) -> list[str]:
    return [rule["content"] for rule in rules_for(guide, task)]


def test_every_task_gets_all_rules_unless_it_is_assigned_some() -> None:
    whole = json.loads(blob(["one", "two"]))
    assert contents(whole, "any.task") == ["one", "two"]
    some = json.loads(blob(["one", "two", "three"], {"a": [2, 0], "b": []}))
    assert contents(some, "a") == ["three", "one"]
    assert contents(some, "b") == []
    assert contents(some, "c") == []
    rest = json.loads(blob(["one", "two"], {"a": [1], "*": [0]}))
    assert (contents(rest, "a"), contents(rest, "z")) == (["two"], ["one"])


def test_what_is_shown_and_where_it_is_from_is_identity_and_nothing_else() -> None:
    bare, full = (
        Rule("Ask."),
        Rule("Ask.", support=3, evidence="both", category="strategy", rationale="It helps."),
    )
    assert guide_blob([bare]) == guide_blob([full])
    for other in (
        Rule("Ask.", trigger="in doubt"),
        Rule("Ask.", steps=("look",)),
        Rule("Ask.", source_tasks=("a",)),
    ):
        assert guide_blob([other]) != guide_blob([bare])


def test_system_message() -> None:
    guide = json.loads(blob(["one", "two"], {"a": [0, 1]}))
    assert system_text("Prompt.", guide, "a") == f"Prompt.\n\n{HEADING}\n- one\n- two"
    assert system_text("Prompt.", guide, "b") == "Prompt."
    assert system_text("Prompt.", None, "a") == "Prompt."


def test_a_rule_is_shown_with_its_trigger_and_steps_and_not_with_its_sources() -> None:
    rule = Rule("Ask  first.", trigger="A name is\nunclear", steps=("look it up", " "), source_tasks=("a",))
    guide = json.loads(guide_blob([rule, Rule("Then act.")]))
    assert system_text("Prompt.", guide, "a") == (
        f"Prompt.\n\n{HEADING}\n- Ask first.\n  When: A name is unclear\n  1. look it up\n- Then act."
    )
