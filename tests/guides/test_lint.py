"""What lint says of rules, and what it takes for a leaked answer."""

import pytest

from xspec.guides.answers import answers_of, leaks_in
from xspec.guides.lint import MAX_TASK_RULES, lint
from xspec.guides.rule import Rule, plain_rules

SOLUTION = {
    "calls": [{"name": "pay", "arguments": {"to": "GB29NWBK60161331926819", "amount": 98.7, "kind": "bill"}}],
    "answer": "The code is 4711.",
}
INSTRUCTION = "Pay the dentist's bill, 98.7 in all, and tell me the code."


def kinds(*contents: str, sources: tuple[str, ...] = ("a",)) -> list[tuple[str, str]]:
    rules = [Rule(content, source_tasks=sources) for content in contents]
    return [(finding.severity, finding.kind) for finding in lint(rules, {}, {}, {})]


@pytest.mark.parametrize(
    ("contents", "found"),
    [
        (("Look the amount up before you pay a bill.",), []),
        ((), [("error", "empty")]),
        (("...",), [("error", "empty")]),
        (("Be careful.",), [("warning", "empty")]),
        (
            (
                "Ask for the user's confirmation before paying.",
                "Never ask for the user's confirmation before paying.",
            ),
            [("error", "contradiction")],
        ),
        (
            (
                "Read the whole file before sending the message.",
                "Read the whole file after sending the message.",
            ),
            [("error", "contradiction")],
        ),
        (
            (
                "Read the whole file before sending the message.",
                "Before sending the message, read the whole file!",
            ),
            [("warning", "duplicate")],
        ),
        (("Read the whole file before sending.", "Never pay a bill before reading its date."), []),
        (("word " * 300,), [("warning", "oversized")]),
    ],
)
def test_findings(contents: tuple[str, ...], found: list[tuple[str, str]]) -> None:
    assert kinds(*contents) == found


def test_rules_without_sources_are_counted() -> None:
    findings = lint(plain_rules(["Look the amount up first.", "Read the file to its end."]), {}, {}, {})
    assert [finding.text for finding in findings] == [
        "no source task is named by 2 of 2 rules, whose scope cannot be known"
    ]


def test_a_task_that_gets_too_much_is_named() -> None:
    rules = [
        Rule(f"Look at thing number {i} with care.", source_tasks=("a",)) for i in range(MAX_TASK_RULES + 1)
    ]
    texts = [
        f.text for f in lint(rules, {"few": [0], "many": range(len(rules))}, {}, {}) if f.kind == "oversized"
    ]
    assert texts == ["up to 41 rules for 1 task (like many): more than is likely to help"]


def test_answers_are_what_the_instruction_does_not_say() -> None:
    answers = answers_of(
        INSTRUCTION, SOLUTION, [{"failures": [{"trace": "expected 'Ada Byron' but got 12345"}]}]
    )
    assert set(answers.values) == {
        "GB29NWBK60161331926819",
        "4711",
        "The code is 4711.",
        "Ada Byron",
        "12345",
    }


def test_literals_of_a_code_solution_are_answers() -> None:
    code = "print(apis.bank.pay(to='gb-29', amount=5120.5, kind='bill'))"
    answers = answers_of("Pay it.", {"calls": [{"code": code}], "answer": "", "commit": 0}, [])
    assert set(answers.values) == {"gb-29", "5120.5"}


def test_a_leak_is_found_as_a_whole_word_only() -> None:
    answers = answers_of(INSTRUCTION, SOLUTION, [])
    assert [value for value, _ in leaks_in("Send it to gb29nwbk60161331926819.", answers)] == [
        "GB29NWBK60161331926819"
    ]
    assert not list(leaks_in("Port 47110 is closed.", answers))


def test_a_rule_is_held_against_its_sources_and_against_who_gets_it() -> None:
    answers = {task: answers_of(INSTRUCTION, SOLUTION, []) for task in ("a", "b", "c")}
    rule = Rule("The code to give is 4711, always.", source_tasks=("a",))
    other = Rule("The code to give is the one in the file.", source_tasks=("b",))
    leaks = [f for f in lint([rule, other], {"a": [1], "b": [0]}, answers, {}) if f.kind == "leak"]
    assert [(f.severity, f.text) for f in leaks] == [("error", "rule 0 holds '4711', in the answer of a")]
    elsewhere = Rule("The code to give is 4711, always.", source_tasks=("x",))
    assert not [f for f in lint([elsewhere], {"y": [0]}, answers, {}) if f.kind == "leak"]


@pytest.mark.parametrize(
    ("amount", "rule", "leaks"),
    [
        (98.7, "Send 98.70 at once.", True),
        (98.7, "Send 98.75 at once.", False),
        (450.0, "Send 450 at once.", True),
        (450.0, "Send 450.00.", True),
        (450, "Send 450.5 at once.", False),
        (1100.0, "Send 1100 at once.", False),  # the instruction says it
    ],
)
def test_an_amount_is_found_however_it_is_written(amount: float, rule: str, leaks: bool) -> None:
    solution = {"calls": [{"name": "pay", "arguments": {"amount": amount}}], "answer": ""}
    answers = answers_of("Pay the rent of 1100 or the bill.", solution, [])
    assert bool(list(leaks_in(rule, answers))) is leaks
