"""Which task gets which rules, and how near they are to it."""

import json
from typing import Any

import pytest

from xspec.errors import SpecError
from xspec.guides.rule import Rule
from xspec.guides.rules import guide_blob
from xspec.guides.scope import guide_scope, task_scope
from xspec.guides.selection import Selection, assign_rules

TASKS: list[dict[str, Any]] = [
    {"id": "pay_1", "cluster": "pay", "instruction": "Pay the bill for the dentist."},
    {"id": "pay_2", "cluster": "pay", "instruction": "Pay the bill for the plumber."},
    {"id": "mail_1", "cluster": "mail", "instruction": "Write to Ada about the meeting."},
    {"id": "mail_2", "cluster": "mail", "instruction": "Write to Bob about the holiday."},
]
RULES = [
    Rule("Look the amount up.", trigger="a bill is paid", source_tasks=("pay_1",)),
    Rule("Read before you write.", trigger="a meeting is arranged", source_tasks=("mail_1", "mail_2")),
    Rule("Check the date.", source_tasks=("elsewhere",)),
    Rule("Be careful."),
]
CLUSTERS = {row["id"]: row["cluster"] for row in TASKS}

EXPECTED: dict[Selection, dict[str, list[int]]] = {
    "own-task": {"pay_1": [0], "mail_1": [1], "mail_2": [1]},
    "same-scenario": {"pay_2": [0]},  # mail's rule had both its tasks as sources
    "exclude-own-scenario": {"pay_1": [1, 2], "pay_2": [1, 2], "mail_1": [0, 2], "mail_2": [0, 2]},
}


@pytest.mark.parametrize("selection", list(EXPECTED))
def test_selection(selection: Selection) -> None:
    assert assign_rules(RULES, TASKS, selection, None) == EXPECTED[selection]


def test_all_needs_no_map() -> None:
    assert assign_rules(RULES, TASKS, "all", None) is None


def test_top_n_takes_the_likest_rules_and_the_core() -> None:
    core = [*RULES, Rule("Finish.", core=True)]
    found = assign_rules(core, TASKS, "top-n", 1)
    assert found is not None
    assert found["pay_1"] == [4, 0]
    assert found["mail_1"] == [4, 1]
    assert found["pay_2"] == [4, 0]  # from the words of pay_1's instruction
    wider = assign_rules(RULES, TASKS, "top-n", 4)
    assert wider is not None
    assert all(3 not in given for given in wider.values())  # nothing in common with any instruction


def test_n_belongs_to_top_n() -> None:
    for selection, n, said in (
        ("all", 3, "belongs to guide.selection=top-n, and the selection is all"),
        ("own-task", 1, "belongs to"),
        ("top-n", None, "top-n wants a number of rules for each task: guide.n=3"),
    ):
        with pytest.raises(SpecError, match=said):
            assign_rules(RULES, TASKS, selection, n)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("sources", "scope"),
    [
        ([], "no rules"),
        ([("pay_1",)], "same-task"),
        ([("pay_2",)], "similar-task"),
        ([("pay_2",), ("pay_1", "mail_1")], "same-task"),
        ([("mail_1",)], "transfer"),
        ([("mail_1",), ("pay_2",)], "similar-task"),
        ([()], "unsourced"),
        ([("mail_1",), ()], "unsourced"),
        ([(), ("pay_1",)], "same-task"),
        ([("agentdojo:pay_1",)], "transfer"),
        ([("of_another_split",)], "transfer"),
    ],
)
def test_scope_of_a_task_is_its_nearest_rule_s(sources: list[tuple[str, ...]], scope: str) -> None:
    rules = [Rule("x", source_tasks=source).plain() for source in sources]
    assert task_scope(rules, "pay_1", CLUSTERS) == scope


def test_scope_of_an_arm_is_counted() -> None:
    tasks = [row["id"] for row in TASKS]

    def scope(selection: Selection) -> Any:
        return guide_scope(
            json.loads(guide_blob(RULES, assign_rules(RULES, TASKS, selection, None))), tasks, CLUSTERS
        )

    own = scope("own-task")
    assert (own.label, own.text()) == ("same-task", "same-task 3, no rules 1 of 4 tasks")
    assert scope("same-scenario").text() == "similar-task 1, no rules 3 of 4 tasks"
    assert scope("exclude-own-scenario").text() == "transfer 4 of 4 tasks"
    everything = scope("all")
    assert (everything.label, everything.rules) == ("mixed", 4)
    assert everything.text() == "same-task 3, similar-task 1 of 4 tasks"
