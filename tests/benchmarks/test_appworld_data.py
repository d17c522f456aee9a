"""AppWorld's data: what is missing, half copied or of another version is one line; digests see changes."""

import importlib.metadata
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from xspec.__main__ import main
from xspec.benchmarks import BENCHMARKS, appworld, package_fingerprint
from xspec.benchmarks.appworld_data import AppWorldData
from xspec.benchmarks.protocol import BadInput, WarmedBenchmark

PERSON = {"first_name": "Ada", "last_name": "Stone", "email": "ada@example.com", "phone_number": "5550000"}
SETTINGS = {
    "difficulty": "all",
    "memory_mb": 2048,
    "random_seed": 100,
    "raise_on_extra_parameters": True,
    "max_interactions": 1000,
    "max_api_calls_per_interaction": 1000,
    "timeout_seconds": 100,
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Files of the right names for two tasks, with contents that only this file needs."""
    for name in ("base_dbs/notes.db", "base_dbs/supervisor.db", "api_docs/standard/notes.json"):
        write(tmp_path / "data" / name, "{}")
    write(tmp_path / "data/datasets/dev.txt", "scene_1:tag\nscene_2\n\n")
    for number in (1, 2):
        task = tmp_path / "data/tasks" / f"scene_{number}"
        specs = {"instruction": f"Do {number}.", "supervisor": PERSON, "db_version": "0.1.0"}
        write(task / "specs.json", json.dumps(specs))
        write(task / "dbs/supervisor.jsonl", "")
        for name in ("answer", "test_data"):
            write(task / f"ground_truth/{name}.json", "[]")
        write(task / "ground_truth/evaluation.py", "")
        write(task / "ground_truth/metadata.json", json.dumps({"difficulty": number}))
    return tmp_path


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def data(root: Path) -> AppWorldData:
    return AppWorldData({"APPWORLD_ROOT": str(root)})


def refused(attempt: Callable[[], object]) -> str:
    with pytest.raises(BadInput) as error:
        attempt()
    assert "\n" not in str(error.value)
    return str(error.value)


def test_missing_data_are_one_line_with_the_two_commands(tmp_path: Path) -> None:
    for said in (refused(lambda: AppWorldData({})), refused(lambda: data(tmp_path / "nowhere"))):
        assert "bin/appworld download data --root" in said
        assert "export APPWORLD_ROOT=" in said
    assert str(tmp_path / "nowhere") in said


@pytest.mark.parametrize("part", ["datasets", "tasks", "base_dbs", "api_docs/standard"])
def test_half_copied_data(root: Path, part: str) -> None:
    shutil.rmtree(root / "data" / part)
    said = refused(lambda: data(root))
    assert "not whole" in said
    assert part in said
    assert "download data" in said


def test_half_copied_tasks_and_other_versions(root: Path) -> None:
    task = root / "data/tasks/scene_2"
    data(root).require("scene_2")
    (task / "ground_truth/evaluation.py").rename(task / "evaluation.py")
    assert "scene_2/ground_truth/evaluation.py is missing" in refused(lambda: data(root).require("scene_2"))
    (task / "evaluation.py").rename(task / "ground_truth/evaluation.py")
    (task / "specs.json").write_text('{"db_version": "0.2.0"}')
    assert "version 0.2.0, and the engine reads 0.1.0" in refused(lambda: data(root).require("scene_2"))
    (task / "specs.json").write_text('{"db_ver')
    assert "specs.json is not JSON" in refused(lambda: data(root).require("scene_2"))


def test_splits_are_the_lists_in_the_data(root: Path) -> None:
    assert data(root).task_ids("dev") == ["scene_1", "scene_2"]
    (root / "data/datasets/mine.txt").write_text("scene_2\n")
    assert data(root).task_ids("mine") == ["scene_2"]
    said = refused(lambda: data(root).task_ids("test_norml"))
    assert "no split 'test_norml'" in said
    assert "dev, mine" in said


def test_a_path_that_the_engine_would_mistake_is_refused(root: Path, tmp_path: Path) -> None:
    moved = tmp_path / "in-memory-of"
    moved.mkdir()
    (root / "data").rename(moved / "data")
    assert "the word memory" in refused(lambda: data(moved))


def test_rows_of_the_manifest_and_what_changes_their_digests(root: Path) -> None:
    def rows() -> dict[str, dict[str, object]]:
        entries = data(root).entries(["scene_1", "scene_2"], "dev")
        return {entry["id"]: dict(entry) for entry in entries}

    first = rows()
    row = first["scene_2"]
    assert (row["cluster"], row["stratum"], row["difficulty"], row["toolset"]) == (
        "scene",
        "dev",
        "medium",
        "code",
    )
    assert row["solution"] is None
    text = str(row["instruction"])
    assert text.startswith("Do 2.\n")
    assert all(value in text for value in PERSON.values())

    write(root / "data/tasks/scene_1/ground_truth/__pycache__/evaluation.pyc", "compiled")
    assert rows() == first
    (root / "data/tasks/scene_2/ground_truth/evaluation.py").write_text("# stricter\n")
    changed = rows()
    assert changed["scene_1"] == first["scene_1"]
    assert changed["scene_2"]["data"] != first["scene_2"]["data"]
    (root / "data/base_dbs/notes.db").write_text("other")
    assert all(rows()[task]["data"] != changed[task]["data"] for task in changed)


def test_the_known_solution_is_read_where_there_is_one(root: Path) -> None:
    assert data(root).solution("scene_1") is None
    known = {"calls": [{"code": "1"}], "commit": 0, "give_up": {"code": "2"}, "note": "not ours"}
    write(root / "data/tasks/scene_1/ground_truth/xspec_solution.json", json.dumps(known))
    solution = data(root).solution("scene_1")
    assert solution == {"calls": [{"code": "1"}], "answer": "", "commit": 0, "give_up": {"code": "2"}}


def test_only_worlds_need_the_engine(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here it is not installed, and still the manifest and the solutions can be asked for."""
    monkeypatch.setenv("APPWORLD_ROOT", str(root))
    monkeypatch.setattr(importlib.metadata, "version", lambda package: "0.1.3")
    benchmark = appworld.make("0.1.0", "dev", SETTINGS)
    assert [row["id"] for row in benchmark.describe()["tasks"]] == ["scene_1", "scene_2"]
    assert benchmark.solution("scene_1") is None
    assert isinstance(benchmark, WarmedBenchmark)
    with pytest.raises(ImportError, match="appworld"):
        benchmark.warm()


def test_changed_data_are_asked_for_anew(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BENCHMARKS, "aw", BENCHMARKS["agentdojo"])
    launch = BENCHMARKS["appworld"]
    own = type(launch)(launch.module, variables=launch.variables, data=launch.data)
    monkeypatch.setitem(BENCHMARKS, "aw", own)
    monkeypatch.setenv("APPWORLD_ROOT", str(root))
    first = package_fingerprint("aw")
    assert package_fingerprint("aw") == first
    (root / "data/tasks/scene_2/specs.json").write_text("{ }")
    assert package_fingerprint("aw") != first


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"random_seed": "100"}, "random_seed of appworld is '100'; it is a whole number"),
        ({"timeout_seconds": 0}, "timeout_seconds of appworld is 0"),
        ({"max_interactions": True}, "max_interactions of appworld is True"),
        ({"raise_on_extra_parameters": 1}, "it is true or false"),
        ({"difficulty": "simple"}, "one of all, easy, medium, hard"),
        ({"seed": 1}, "no setting 'seed'"),
    ],
)
def test_settings_are_checked(change: dict[str, object], said: str) -> None:
    assert said in refused(lambda: appworld.make("0.1.0", "dev", {**SETTINGS, **change}))


def test_every_setting_has_to_be_given() -> None:
    for name in SETTINGS:
        some = {key: value for key, value in SETTINGS.items() if key != name}
        assert f"needs the setting {name}" in refused(lambda some=some: appworld.make("0.1.0", "dev", some))
    assert "no data of version '0.2'" in refused(lambda: appworld.make("0.2", "dev", SETTINGS))


def test_a_missing_environment_is_one_line_with_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XSPEC_ENVIRONMENTS", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert main(["benchmark=appworld", "agent=code_react", f"store={tmp_path / 'store'}"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "python -m xspec env create appworld" in error
