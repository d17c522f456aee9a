"""Nothing that AppWorld keeps encrypted stands in the open in this repository.

Its licence asks for that. What must not stand here is taken from the installed package when the test runs: lines of
its unpacked code, texts of its API documentation, and the mark that all of its files bear.
"""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SHORTEST = 30
"""Shorter lines, like those of any program, prove nothing."""

FIND = """
import pathlib, appworld
from appworld.common.constants import CANARY_STRING
print(CANARY_STRING)
print(pathlib.Path(appworld.__file__).parent / "apps")
"""


@pytest.fixture(scope="module")
def tracked() -> dict[str, str]:
    """The text files that git tracks or would add, by name."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"not a git working tree: {done.stderr.strip()}")
    texts = {}
    for name in filter(None, done.stdout.split("\0")):
        try:
            texts[name] = (ROOT / name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue
    return texts


@pytest.fixture(scope="module")
def installed(appworld_run: Callable[..., str], tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """The mark of AppWorld's files, and the folder of its unpacked code."""
    root = tmp_path_factory.mktemp("nothing")
    mark, apps = appworld_run("-c", FIND, APPWORLD_ROOT=str(root)).splitlines()
    return mark, Path(apps)


def test_no_file_bears_the_mark(tracked: dict[str, str], installed: tuple[str, Path]) -> None:
    mark, apps = installed
    assert mark in (apps / "phone" / "models.py").read_text()
    assert len(tracked) > 100
    assert [name for name, text in tracked.items() if mark in text] == []


def test_no_line_is_one_of_the_unpacked_code(tracked: dict[str, str], installed: tuple[str, Path]) -> None:
    files = [path for path in installed[1].glob("*/*.py") if path.parent.name != "__pycache__"]
    protected = {line for path in files for line in lines(path.read_text())}
    assert len(protected) > 3000
    found = {name: common for name, text in tracked.items() if (common := protected & set(lines(text)))}
    assert found == {}


def test_no_text_is_one_of_the_api_documentation(tracked: dict[str, str], appworld_root: Path) -> None:
    documents = [
        json.loads(path.read_text()) for path in (appworld_root / "data/api_docs/standard").iterdir()
    ]
    protected = {text for document in documents for text in texts(document) if len(text) >= SHORTEST}
    assert len(protected) > 300
    found = {
        name: common for name, text in tracked.items() if (common := {t for t in protected if t in text})
    }
    assert found == {}


def lines(text: str) -> Iterator[str]:
    """Lines long enough to tell one program from another. What is imported is the same for everyone."""
    for line in map(str.strip, text.splitlines()):
        if len(line) >= SHORTEST and not line.startswith(("import ", "from ")):
            yield line


def texts(value: object) -> Iterator[str]:
    """Every text in plain data, keys left out."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for below in value.values():
            yield from texts(below)
    elif isinstance(value, list):
        for below in value:
            yield from texts(below)
