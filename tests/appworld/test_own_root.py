"""The own AppWorld tasks on the real engine: what passes, what fails, and that each build is the same."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

PLAYER = Path(__file__).parent / "play_root.py"
SCENARIOS = ("alarmoff", "tagcount", "chores", "rota")
TASKS = {f"{scenario}_{n}" for scenario in SCENARIOS for n in (1, 2, 3)}


@pytest.fixture(scope="module")
def played(
    appworld_run: Callable[..., str], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, dict[str, bool]]]:
    """A second root, built elsewhere on earth with another hash seed, and the verdicts of playing its tasks."""
    root = tmp_path_factory.mktemp("played")
    printed = appworld_run(PLAYER, root, TZ="Asia/Tokyo", PYTHONHASHSEED="77")
    return root, json.loads(printed)


def test_two_builds_have_the_same_bytes(appworld_root: Path, played: tuple[Path, object]) -> None:
    one, other = (contents(root / "data") for root in (appworld_root, played[0]))
    assert len(one) > 200
    assert one.keys() == other.keys()
    assert [name for name in one if one[name] != other[name]] == []


def test_solutions_pass_and_nothing_else_does(played: tuple[Path, dict[str, dict[str, bool]]]) -> None:
    verdicts = played[1]
    assert verdicts.keys() == TASKS
    for task, ways in verdicts.items():
        late = ways.pop("give up after commit", None)
        passing = {way for way, passed in ways.items() if passed}
        assert passing == {way for way in ways if way.startswith("solution")}, task
        assert len(passing) == 1, task
        if late is not None:  # the world is as asked; where an answer is asked too, giving up still fails
            assert late is task.startswith(("alarmoff", "chores")), task


def test_solutions_have_more_than_two_steps_and_tasks_all_difficulties(appworld_root: Path) -> None:
    difficulties = set()
    for task in TASKS:
        truth = appworld_root / "data" / "tasks" / task / "ground_truth"
        solution = json.loads((truth / "xspec_solution.json").read_text())
        assert len(solution["calls"]) > 2
        assert 0 < solution["commit"] < len(solution["calls"])
        difficulties.add(json.loads((truth / "metadata.json").read_text())["difficulty"])
    assert difficulties == {1, 2, 3}


def test_splits_hold_whole_scenarios(appworld_root: Path) -> None:
    for split in ("train", "dev", "test_normal", "test_challenge"):
        ids = (appworld_root / "data" / "datasets" / f"{split}.txt").read_text().split()
        assert {f"{task.split('_')[0]}_{n}" for task in ids for n in (1, 2, 3)} == set(ids)
    assert set((appworld_root / "data" / "datasets" / "test_normal.txt").read_text().split()) == TASKS


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
