"""`env check appworld`: verdicts on the data at hand mean something, or the tasks where they don't are named."""

import shutil
from pathlib import Path

import pytest

from xspec.__main__ import main

HARD = "benchmark.settings.difficulty=hard"


@pytest.fixture
def root(appworld_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the own tasks, to be changed; the default split is `dev`."""
    root = tmp_path / "root"
    shutil.copytree(appworld_root, root)
    shutil.copy(root / "data/datasets/test_normal.txt", root / "data/datasets/dev.txt")
    monkeypatch.setenv("APPWORLD_ROOT", str(root))
    return root


def test_tasks_whose_verdict_measures_nothing_are_named(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    truth = root / "data/tasks/rota_2/ground_truth"
    (truth / "evaluation.py").write_text("def evaluate(test, **given):\n    pass\n")
    (truth / "test_data.json").write_text("[]")
    (root / "data/tasks/rota_3/ground_truth/xspec_solution.json").unlink()
    assert main(["env", "check", "appworld", HARD]) == 3
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("appworld: appworld 0.1.3.post1 and all pinned packages")
    assert "code of a model runs confined; enforced:" in said[1]
    assert said[2:] == ["appworld: rota_2 passes when nothing is done: exclude it, with the reason"]


def test_a_missing_or_empty_database_is_missing_data(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    database = root / "data/base_dbs/todoist.db"
    database.write_bytes(b"")  # as a disk that was full while copying leaves it
    assert main(["env", "check", "appworld", HARD]) == 2
    database.unlink()
    assert main(["env", "check", "appworld", HARD]) == 2
    for error in capsys.readouterr().err.splitlines():
        assert "base_dbs/todoist.db is missing or empty; run: " in error


def test_missing_data_are_one_line(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(root / "data/base_dbs")
    assert main(["env", "check", "appworld", HARD]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "base_dbs is missing or empty" in error
    assert "bin/appworld download data --root" in error
