"""Reading guides from files, whatever form they have."""

import json
from pathlib import Path
from typing import Any

import pytest

from xspec.errors import SpecError, UserError
from xspec.guides.guide_file import GuideFile, Provenance, RuleEntry, StepUncertainty, guide_file_bytes
from xspec.guides.read import read_guide
from xspec.guides.rule import Rule

FILES = {
    "dashes": ("- one\n- two\n", ["one", "two"]),
    "stars, bullets and numbers": ("* one\n• two\n3. three\n4) four\n", ["one", "two", "three", "four"]),
    "headings are left out": ("# Guide\n\n- one\n## More\n- two\n", ["one", "two"]),
    "an item goes on": (
        "- one\n  and more\nand more\n\nno part of it\n- two\n",
        ["one and more and more", "two"],
    ),
    "paragraphs where there are no items": (
        "First rule\ngoes on.\n\nSecond rule.\n",
        ["First rule goes on.", "Second rule."],
    ),
    "one line": ("Only this.", ["Only this."]),
    "carriage returns": ("- one\r\n- two\r\n", ["one", "two"]),
    "a dash inside a rule": ("- one - not two\n", ["one - not two"]),
    "a byte order mark": ("\ufeff- one\n", ["one"]),
    "a link first": ("[one](https://example.org)\n", ["[one](https://example.org)"]),
    "beyond ASCII": ("- größer als 5 €\n", ["größer als 5 €"]),
}


def write(folder: Path, data: Any) -> str:
    path = folder / "guide.json"
    path.write_text(data if isinstance(data, str) else json.dumps(data))
    return str(path)


@pytest.mark.parametrize(("text", "rules"), FILES.values(), ids=list(FILES))
def test_rules_of_a_text(tmp_path: Path, text: str, rules: list[str]) -> None:
    path = tmp_path / "guide.md"
    path.write_bytes(text.encode())
    assert [rule.content for rule in read_guide(str(path)).rules] == rules


@pytest.mark.parametrize(
    "data", [b"", b"\n \n", b"# only a heading\n", b"-  \n- \n", b"\xff\xfe", b"x" * 200_001, b"- a\0b\n"]
)
def test_file_without_usable_rules_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "guide.md"
    path.write_bytes(data)
    with pytest.raises(UserError, match="guide file"):
        read_guide(str(path))


def test_what_never_ends_is_not_read(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no regular file"):
        read_guide("/dev/zero")
    with pytest.raises(UserError, match="no regular file"):
        read_guide(str(tmp_path))
    (tmp_path / "long").write_bytes(b"- rule\n" * 3_000_000)
    with pytest.raises(UserError, match="has more than 20000000 bytes"):
        read_guide(str(tmp_path / "long"))


def test_altk_playbook(tmp_path: Path) -> None:
    entries = [{"r": "Look first.", "n": 3, "e": "b"}, {"r": "Then act."}]
    guide = read_guide(write(tmp_path, {"entries": entries}))
    assert guide.form == "ALTK playbook"
    assert guide.rules == (Rule("Look first.", support=3, evidence="both"), Rule("Then act."))


def test_altk_retrieval_index(tmp_path: Path) -> None:
    singleton = {"rule": "Then act.", "source_task": "t_1", "source_instruction": "Pay the bill."}
    guide = read_guide(write(tmp_path, {"core": ["Look first."], "singletons": [singleton]}))
    assert guide.form == "ALTK retrieval index"
    assert guide.rules == (
        Rule("Look first.", core=True),
        Rule("Then act.", source_tasks=("t_1",), source_instruction="Pay the bill."),
    )


def test_a_guide_file_says_what_was_written_into_it(tmp_path: Path) -> None:
    entry = RuleEntry(
        content="Look.", trigger="always", steps=("one", "two"), support=2, source_tasks=("a", "b")
    )
    step = StepUncertainty(run=0, task="a", step=2, uncertainty=0.4, samples=5, marked=True)
    provenance = Provenance(generator="somebody", benchmark="agentdojo", calls=7, uncertainty=(step,))
    file = GuideFile(xspec_guide=1, rules=(entry,), provenance=provenance)
    path = tmp_path / "guide.json"
    path.write_bytes(guide_file_bytes(file))
    guide = read_guide(str(path))
    assert guide.rules == (entry.rule(),)
    assert guide.benchmark == "agentdojo"
    assert guide.provenance is not None
    assert guide.provenance["calls"] == 7
    assert guide.provenance["uncertainty"] == (step.model_dump(),)
    assert GuideFile.model_validate_json(path.read_bytes()) == file


WRONG = {
    "no known form": ({"rules": ["one"]}, "JSON of no known form; known: a guide file"),
    "a list of texts": ('[\n  "one",\n  "two"\n]', "JSON of no known form"),
    "an empty list": ("[]", "JSON of no known form"),
    "a byte order mark before JSON": ("\ufeff" + '{"rules": []}', "JSON of no known form"),
    "torn": ('{"entries": [', "begins like JSON and is none"),
    "a newer format": ({"xspec_guide": 2, "rules": []}, "format 2; this xspec knows 1"),
    "an unknown field": (
        {"xspec_guide": 1, "rules": [{"content": "a", "color": 1}]},
        "unknown key rules.0.color",
    ),
    "an empty content": ({"xspec_guide": 1, "rules": [{"content": ""}]}, "rules.0.content"),
    "no rules": ({"xspec_guide": 1, "rules": []}, "holds no rule"),
    "a playbook without text": ({"entries": [{"n": 1}]}, r"entries\[0\] should be"),
    "a playbook with odd support": ({"entries": [{"r": "a", "n": 0}]}, r"entries\[0\].n should be a count"),
    "a playbook with odd evidence": ({"entries": [{"r": "a", "e": "x"}]}, "should be s, f or b"),
    "an index with a number": ({"core": [3]}, r"core\[0\] should be a rule"),
    "an index that is no list": ({"singletons": {}}, "should be lists"),
}


@pytest.mark.parametrize(("data", "message"), WRONG.values(), ids=list(WRONG))
def test_wrong_file_is_one_line(tmp_path: Path, data: Any, message: str) -> None:
    with pytest.raises(SpecError, match=message) as raised:
        read_guide(write(tmp_path, data))
    assert "\n" not in str(raised.value)
    assert "guide.json" in str(raised.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            '{"xspec_guide": 1, "rules": [{"content": "Look.", "content": "Pay."}]}',
            "the key 'content' twice",
        ),
        ('{"xspec_guide": 1, "rules": [{"content": "Look \\ud800."}]}', "half a character"),
        ('{"entries": [{"r": "Look \\ud800.", "n": 1, "e": "s"}]}', "half a character"),
    ],
)
def test_json_that_two_readers_could_take_for_two_guides(tmp_path: Path, text: str, said: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(SpecError, match=said) as refused:
        read_guide(path)
    assert f"guide file {path}" in str(refused.value)
