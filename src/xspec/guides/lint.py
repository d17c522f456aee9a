"""What is wrong, or likely wrong, with a guide. By words alone: a person reads what it points at."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from xspec.counted import counted
from xspec.guides.answers import Answers, leaks_in
from xspec.guides.rule import Rule
from xspec.guides.similarity import jaccard, words

MAX_RULE_CHARACTERS = 1_000
MAX_TASK_CHARACTERS = 16_000
"""About 4,000 tokens that every call of the trial carries."""
MAX_TASK_RULES = 40
"""How many rules help is contested: 31 beat 292 in one published comparison and lost in another."""
ALIKE = 0.6
"""Share of words in common from which two rules are taken to be about the same thing."""

_NEGATION = frozenset(("not", "never", "avoid", "without", "don", "cannot", "refuse", "skip"))
_OPPOSITES = (
    ("before", "after"),
    ("always", "never"),
    ("first", "last"),
    ("include", "exclude"),
    ("all", "none"),
)
_NEGATED = re.compile(r"\b(?:do not|don't|never|avoid|must not|should not|without|skip)\b", re.IGNORECASE)
_FILLER = frozenset(
    ("the", "and", "for", "with", "that", "this", "each", "any", "are", "you", "your", "must", "should")
)


@dataclass(frozen=True, slots=True)
class Finding:
    """`error`: don't use the guide like this. `warning`: look at it."""

    severity: Literal["error", "warning"]
    kind: Literal["empty", "contradiction", "duplicate", "oversized", "leak", "unsourced"]
    text: str


def lint(
    rules: Sequence[Rule],
    given: Mapping[str, Sequence[int]],
    answers: Mapping[str, Answers],
    unknown: Mapping[int, Sequence[str]],
) -> list[Finding]:
    """Everything to be said of the rules. `given` maps the tasks to the rules they get; `answers` is known by task.

    `unknown` are source tasks that a rule named and the benchmark does not have; they are not among the rule's.
    """
    return [
        *_empty(rules),
        *_alike(rules),
        *_oversized(rules, given),
        *_leaks(rules, given, answers),
        *_unsourced(rules, unknown),
    ]


def _empty(rules: Sequence[Rule]) -> Iterator[Finding]:
    if not rules:
        yield Finding("error", "empty", "the guide has no rules")
    for i, rule in enumerate(rules):
        if not words(rule.content):
            yield Finding("error", "empty", f"rule {i}: no words in {rule.content!r}")
        elif len(words(rule.content)) < 3:
            yield Finding("warning", "empty", f"rule {i}: {rule.content!r} says hardly anything")


def _alike(rules: Sequence[Rule]) -> Iterator[Finding]:
    topics = [frozenset(words(rule.content)) - _NEGATION - _FILLER for rule in rules]
    for i, j in combinations(range(len(rules)), 2):
        if jaccard(topics[i], topics[j]) < ALIKE:
            continue
        if _contradict(rules[i].content, rules[j].content):
            what = (
                f"rules {i} and {j} seem to say opposite things: {rules[i].content!r} | {rules[j].content!r}"
            )
            yield Finding("error", "contradiction", what)
        elif topics[i] == topics[j]:
            yield Finding("warning", "duplicate", f"rules {i} and {j} say the same: {rules[i].content!r}")


def _contradict(a: str, b: str) -> bool:
    if bool(_NEGATED.search(a)) != bool(_NEGATED.search(b)):
        return True
    one, other = set(words(a)), set(words(b))
    only_one, only_other = one - other, other - one
    return any(
        (x in only_one and y in only_other) or (y in only_one and x in only_other) for x, y in _OPPOSITES
    )


def _oversized(rules: Sequence[Rule], given: Mapping[str, Sequence[int]]) -> Iterator[Finding]:
    for i, rule in enumerate(rules):
        if len(rule.text) > MAX_RULE_CHARACTERS:
            yield Finding("warning", "oversized", f"rule {i} has {counted(len(rule.text), 'character')}")
    sizes = {task: sum(len(rules[i].text) for i in indices) for task, indices in given.items()}
    for over, most, unit in (
        ([t for t in given if sizes[t] > MAX_TASK_CHARACTERS], max(sizes.values(), default=0), "character"),
        (
            [t for t in given if len(given[t]) > MAX_TASK_RULES],
            max(map(len, given.values()), default=0),
            "rule",
        ),
    ):
        if over:
            whose = f"{counted(len(over), 'task')} (like {over[0]})"
            text = f"up to {counted(most, unit)} for {whose}: more than is likely to help"
            yield Finding("warning", "oversized", text)


def _leaks(
    rules: Sequence[Rule], given: Mapping[str, Sequence[int]], answers: Mapping[str, Answers]
) -> Iterator[Finding]:
    """A rule is held against the tasks it was made from and those that get it."""
    for i, rule in enumerate(rules):
        tasks = {*rule.source_tasks, *(task for task, indices in given.items() if i in indices)}
        told: set[str] = set()
        for task in sorted(tasks & answers.keys()):
            for value, origin in leaks_in(rule.text, answers[task]):
                if value not in told:
                    told.add(value)
                    yield Finding("error", "leak", f"rule {i} holds {value!r}, {origin} of {task}")


def _unsourced(rules: Sequence[Rule], unknown: Mapping[int, Sequence[str]]) -> Iterator[Finding]:
    for i, tasks in unknown.items():
        named = ", ".join(tasks[:3]) + (", …" if len(tasks) > 3 else "")
        so = "" if rules[i].source_tasks else ", so its scope cannot be known"
        text = (
            f"rule {i} names source tasks that the benchmark does not have ({named}); they do not count{so}"
        )
        yield Finding("warning", "unsourced", text)
    without = sum(not rule.source_tasks and i not in unknown for i, rule in enumerate(rules))
    if rules and without:
        text = f"no source task is named by {without} of {counted(len(rules), 'rule')}, whose scope cannot be known"
        yield Finding("warning", "unsourced", text)
