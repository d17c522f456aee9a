"""Reading rules from a file, and putting them into a system message."""

import json
from pathlib import Path

import pytest

from xspec.errors import SpecError, UserError
from xspec.guides.rules import HEADING, guide_blob, read_rules, rules_for, system_text

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
    "beyond ASCII": ("- größer als 5 €\n", ["größer als 5 €"]),
}


@pytest.mark.parametrize(("text", "rules"), FILES.values(), ids=list(FILES))
def test_rules_of_a_file(tmp_path: Path, text: str, rules: list[str]) -> None:
    path = tmp_path / "guide.md"
    path.write_bytes(text.encode())
    assert read_rules(str(path)) == rules


@pytest.mark.parametrize(
    "data", [b"", b"\n \n", b"# only a heading\n", b"-  \n- \n", b"\xff\xfe", b"x" * 200_001]
)
def test_file_without_usable_rules_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "guide.md"
    path.write_bytes(data)
    with pytest.raises(UserError, match="guide file"):
        read_rules(str(path))


def test_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="guide file"):
        read_rules(str(tmp_path))


def test_same_rules_have_the_same_blob_however_they_are_spaced() -> None:
    assert guide_blob(["Be  careful.\n", "Ask."]) == guide_blob(["Be careful.", "Ask."])
    assert guide_blob(["Ask.", "Be careful."]) != guide_blob(["Be careful.", "Ask."])


@pytest.mark.parametrize("rules", [[], [""], ["one", " \n"]])
def test_empty_rules_make_no_guide(rules: list[str]) -> None:
    with pytest.raises(SpecError, match="at least one rule"):
        guide_blob(rules)


def test_every_task_gets_all_rules_unless_it_is_assigned_some() -> None:
    whole = json.loads(guide_blob(["one", "two"]))
    assert rules_for(whole, "any.task") == ["one", "two"]
    some = json.loads(guide_blob(["one", "two", "three"], {"a": [2, 0], "b": []}))
    assert rules_for(some, "a") == ["three", "one"]
    assert rules_for(some, "b") == []
    assert rules_for(some, "c") == []
    rest = json.loads(guide_blob(["one", "two"], {"a": [1], "*": [0]}))
    assert (rules_for(rest, "a"), rules_for(rest, "z")) == (["two"], ["one"])


def test_system_message() -> None:
    guide = json.loads(guide_blob(["one", "two"], {"a": [0, 1]}))
    assert system_text("Prompt.", guide, "a") == f"Prompt.\n\n{HEADING}\n- one\n- two"
    assert system_text("Prompt.", guide, "b") == "Prompt."
    assert system_text("Prompt.", None, "a") == "Prompt."


def test_what_never_ends_is_not_read(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no regular file"):
        read_rules("/dev/zero")
    with pytest.raises(UserError, match="no regular file"):
        read_rules(str(tmp_path))
    (tmp_path / "long").write_bytes(b"- rule\n" * 100_000)
    with pytest.raises(UserError, match="has more than 200000 bytes"):
        read_rules(str(tmp_path / "long"))
