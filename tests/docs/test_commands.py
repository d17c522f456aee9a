"""Every command in README and docs is run, or at least compiled where it would need a paid provider."""

import contextlib
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from xspec.__main__ import main
from xspec.cli import VERBS
from xspec.records.executions import executions_of
from xspec.spec.compose import compose
from xspec.spec.config import validate_config
from xspec.spec.store import Store

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
SMALL = ["benchmark.tasks=[banking.user_task_0,slack.user_task_0]", "k=2"]
INTERACTIVE = ("ui", "rehearsal", "gateway", "doctor", "loop")


def commands() -> Iterator[tuple[str, str]]:
    """(page, command) of every line in a shell block, continuation lines joined, comments dropped."""
    for page in PAGES:
        for block in re.findall(r"```sh\n(.*?)```", page.read_text(), re.DOTALL):
            for line in block.replace("\\\n", " ").splitlines():
                words = shlex.split(line, comments=True)
                if words:
                    yield page.name, shlex.join(words)


COMMANDS = sorted(set(commands()))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working folder whose store holds one small sweep."""
    cwd = tmp_path_factory.mktemp("docs")
    (cwd / "my-rules.md").write_text("- look before you act\n")
    rule = {"content": "look before you pay anything", "source_tasks": ["banking.user_task_0"]}
    (cwd / "my-guide.json").write_text(json.dumps({"xspec_guide": 1, "rules": [rule]}))
    done = process(cwd, sys.executable, "-m", "xspec", "+arm=baseline,guided", *SMALL, "-m")
    assert done.returncode == 0, done.stderr
    return cwd


def process(cwd: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, cwd=cwd, capture_output=True, text=True, timeout=240)


@pytest.mark.parametrize(("page", "command"), COMMANDS, ids=[command for _, command in COMMANDS])
def test_command(folder: Path, capsys: pytest.CaptureFixture[str], page: str, command: str) -> None:
    """In this process, whose imports are done; only a launcher's processes would outlive the command here."""
    words = shlex.split(command)
    if words[0] == "make":
        targets = [word for word in words[1:] if "=" not in word]
        done = process(ROOT, "make", "-n", *targets)
        assert done.returncode == 0, done.stderr
        return
    if words[:3] != ["python", "-m", "xspec"]:
        pytest.fail(f"{page}: {command!r} is neither make nor python -m xspec: say how it is to be tested")
    arguments = with_ids(folder, words[3:])
    published = any("+published=" in word for word in arguments)
    if published:
        # Its data are the user's: everything up to asking the benchmark is tried here.
        sides = arguments[1:] if arguments[0] == "diff" else [shlex.join(arguments)]
        for side in sides:
            overrides = [word for word in shlex.split(side) if word not in VERBS and word != "-m"]
            validate_config(compose([re.sub(r"^(\+arm=[a-z_]+),.*", r"\1", word) for word in overrides]))
        return
    if arguments[0] in INTERACTIVE:
        arguments = [arguments[0], "--help"]
    elif arguments[:2] == ["guide", "generate"]:  # tests/guides runs it and the loop, with the real library
        arguments = [*arguments[:2], "--help"]
    elif (
        arguments[0] == "env" and arguments[1] != "list"
    ):  # tests of other files use what it would make or remove
        arguments = [*arguments[:2], "--help"]
    elif arguments[:2] == ["export", "appworld-run"]:  # tests/appworld has an execution to export
        arguments = [*arguments[:2], "--help"]
    elif arguments[0] not in VERBS:
        arguments = small(arguments)
    if any(word.startswith("hydra/launcher=") for word in arguments):
        done = process(folder, sys.executable, "-m", "xspec", *arguments)
        code, said = done.returncode, done.stdout + done.stderr
    else:
        with contextlib.chdir(folder):
            try:
                code = main(arguments)
            except SystemExit as help_shown:
                code = help_shown.code
        said = "".join(capsys.readouterr())
    assert code == 0, f"{page}: {command}\n{said}"


def with_ids(folder: Path, words: list[str]) -> list[str]:
    """Placeholders like `xs-…` and `ex-…` stand for something stored."""
    stored = executions_of(Store(folder / "mlruns"))[0]
    return [
        word.replace("xs-…", stored.info.spec_id)
        .replace("ex-…", stored.path.name)
        .replace("FILE", "bundle.json")
        for word in words
    ]


def small(overrides: list[str]) -> list[str]:
    """The experiment on two tasks; one that would call a paid provider is compiled instead.

    A launcher's jobs are processes of their own. Two arms of four show that they come up, and find the sweep of
    `folder` finished; tests/sweep has them execute one.
    """
    paid = any(word.startswith("provider=") and word[9:] not in ("rehearsal", "local") for word in overrides)
    if any(word.startswith("benchmark=") for word in overrides):
        return [*(word for word in overrides if not word.startswith("k=")), "benchmark.limit=2", "k=1"]
    kept = [word for word in overrides if not word.startswith(("k=", "benchmark.limit="))]
    if any(word.startswith("hydra/launcher=") for word in kept):
        kept = [re.sub(r"^(\+arm=[a-z_]+,[a-z_]+),.*", r"\1", word) for word in kept]
    if paid:
        first = [re.sub(r"^(\+arm=[a-z_]+),.*", r"\1", word) for word in kept if word != "-m"]
        return ["show", *first, *SMALL]
    return [*(word for word in kept if word != "-m"), *SMALL, *(["-m"] if "-m" in kept else [])]


def test_there_are_commands_to_test() -> None:
    assert len(COMMANDS) >= 10
