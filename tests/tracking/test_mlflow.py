"""From the tables to MLflow: once per content, from any process, after any death, at any place."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from xspec.experiment.lease import Lease
from xspec.spec.store import Store
from xspec.tracking import project
from xspec.tracking.database import projected_marks
from xspec.tracking.project import pending, project_all, tracking_environment

RUN_TRACKING_PROCESS = project.run_tracking_process
KILLER = Path(__file__).with_name("kill_everywhere.py")


def name_of(folder: Any, arm: str = "baseline") -> str:
    return f"{arm} {folder.info.spec_id[:9]}"


def test_an_execution_is_a_run_with_a_nested_run_for_each_run(maker: Any, database: Any) -> None:
    folder = maker.execution(["+-", "++"])
    assert project_all(maker.store) == 1
    info = folder.info
    assert database.statuses() == {
        name_of(folder): "FINISHED",
        "baseline run 0": "FINISHED",
        "baseline run 1": "FINISHED",
    }
    tags = database.tags_of(name_of(folder))
    assert tags["xspec.execution_id"] == info.execution_id
    assert tags["spec_id"] == info.spec_id
    assert tags["condition_id"] == maker.store.spec(info.spec_id).condition_id
    assert (tags["arm"], tags["guide"], tags["route"], tags["simulated"]) == (
        "baseline",
        "none",
        "fixed",
        "no",
    )
    assert tags["mlflow.note.content"].startswith(
        "**baseline: Mean@2 75.0, Pass^2 50.0, gap 25.0 pp** over 2 of 2"
    )
    figures = database.metrics_of(name_of(folder))
    assert (figures["mean_at_2_pct"], figures["pass_hat_2_pct"], figures["pass_at_2_pct"]) == (75, 50, 100)
    assert (figures["gap_pp"], figures["gap_pp_invalid_as_fail"]) == (25, 25)
    assert (figures["retry_count"], figures["total_tokens"]) == (4, 440)
    assert database.metrics_of("baseline run 0")["pass_share_pct"] == 50
    parents = database.rows("SELECT DISTINCT value FROM tags WHERE key = 'mlflow.parentRunId'")
    assert parents == database.rows("SELECT run_uuid FROM runs WHERE name = ?", name_of(folder))
    params = dict(database.rows("SELECT key, value FROM params"))
    assert params["k"] == "2"
    assert params["sampling.temperature"] == "0"
    assert params["benchmark.tasks"] == "banking.user_task_0, slack.user_task_1"


def test_protected_texts_become_artifacts_only_when_asked_for(maker: Any, database: Any) -> None:
    """The store keeps them; MLflow says why it does not."""
    maker.plain["benchmark"]["kind"] = "appworld"
    folder = maker.execution()
    assert project_all(maker.store) == 1
    assert database.tags_of(name_of(folder))["protected"] == "yes"
    ((uri,),) = database.rows("SELECT artifact_uri FROM runs WHERE name = ?", name_of(folder))
    there = Path(uri)

    def texts() -> bytes:
        return b"".join(path.read_bytes() for path in there.rglob("*") if path.is_file())

    assert b"Do it." not in texts()
    assert "licence" in (there / "PROTECTED.txt").read_text()
    assert {p.name for p in (there / "parquet").iterdir()} >= {"attempts-1.parquet", "metrics.parquet"}
    first = json.loads((there / "trajectories/run-0.json").read_text())[0]
    assert (first["outcome"], first["steps"][0]["step"]) == ("pass", 0)
    assert (folder.path / "parquet" / "steps-1.parquet").exists()
    assert project_all(maker.store) == 0
    assert project_all(maker.store, include_protected=True) == 1
    assert b"Do it." in texts()
    assert project_all(maker.store) == 0, "what the user let in stays"
    assert project_all(maker.store, include_protected=True) == 0


def test_the_artifacts_can_be_read(maker: Any, database: Any) -> None:
    folder = maker.execution()
    project_all(maker.store)
    ((uri,),) = database.rows("SELECT artifact_uri FROM runs WHERE name = ?", name_of(folder))
    there = Path(uri)
    assert there.is_relative_to(maker.store.path / "artifacts")
    assert (there / "spec.json").read_bytes() == maker.store.spec_bytes(folder.info.spec_id)
    assert [lock["stint"] for lock in json.loads((there / "lock.json").read_text())] == [1]
    snapshot = json.loads((there / "config_snapshot.json").read_text())
    assert snapshot["agent"]["prompt"]["text"] == "You are an agent."
    usage = json.loads((there / "usage.json").read_text())
    assert (usage["calls"], usage["attempts"], usage["retry_count"]) == (4, 8, 4)
    assert usage["members"]["main"]["errors"] == {"rate_limited": 4}
    first = json.loads((there / "trajectories/run-0.json").read_text())[0]
    assert (first["task"], first["outcome"]) == ("banking.user_task_0", "pass")
    assert first["steps"][0]["messages"][0] == {"role": "user", "content": "Do it."}
    assert {p.name for p in (there / "parquet").iterdir()} >= {"trials-1.parquet", "attempts-1.parquet"}


def test_projecting_again_adds_nothing(maker: Any, database: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    maker.execution()
    project_all(maker.store)
    once = database.counts()
    project.run_tracking_process(maker.store.path)
    monkeypatch.setattr(project, "run_tracking_process", lambda _: pytest.fail("nothing is pending"))
    assert project_all(maker.store) == 0
    assert database.counts() == once


def test_a_resumed_execution_is_taken_up_not_duplicated(maker: Any, database: Any) -> None:
    folder = maker.execution(["+-", "?."])
    project_all(maker.store)
    assert database.statuses()[name_of(folder)] == "KILLED"
    assert "Unfinished; missing: 1 trial." in database.tags_of(name_of(folder))["mlflow.note.content"]
    maker.stint(folder, ["..", "++"], take=1)
    assert pending(maker.store)
    project_all(maker.store)
    assert database.statuses() == {
        name_of(folder): "FINISHED",
        "baseline run 0": "FINISHED",
        "baseline run 1": "FINISHED",
    }
    figures = database.metrics_of(name_of(folder))
    assert (figures["gap_pp"], figures["superseded"], figures["trials_invalid"]) == (25, 1, 0)


def test_the_second_execution_of_a_spec_says_so(maker: Any, database: Any) -> None:
    first = maker.execution()
    maker.execution(["++", "++"])
    project_all(maker.store)
    assert {name_of(first), f"{name_of(first)} (2)"} <= set(database.statuses())


def test_what_another_process_works_on_is_left_to_it(maker: Any, database: Any) -> None:
    folder = maker.execution(["+.", ".."])
    with Lease(folder.path / "lease", "it"):
        assert project_all(maker.store) == 0
    assert project_all(maker.store) == 1


def test_a_run_that_a_person_deleted_stays_deleted(maker: Any, database: Any, python: Any) -> None:
    folder = maker.execution(["+.", ".."])
    project_all(maker.store)
    ((run,),) = database.rows("SELECT run_uuid FROM runs WHERE name = ?", name_of(folder))
    python(
        "-c",
        "import sys; from mlflow import MlflowClient; MlflowClient(sys.argv[1]).delete_run(sys.argv[2])",
        f"sqlite:///{database.path}",
        run,
    )
    maker.stint(folder, [".+", "++"])
    assert project_all(maker.store) == 0
    project.run_tracking_process(maker.store.path)
    assert len(database.rows("SELECT 1 FROM runs WHERE name = ?", name_of(folder))) == 1


def test_a_moved_store_works_where_it_is_now(maker: Any, database: Any, tmp_path: Path, python: Any) -> None:
    folder = maker.execution()
    execution_id = folder.info.execution_id
    project_all(maker.store)
    moved = Store(shutil.move(maker.store.path, tmp_path / "else where"), create=False)
    assert projected_marks(moved.path) is None
    assert project_all(moved) == 1
    look = """
import sys
from mlflow import MlflowClient
client = MlflowClient(sys.argv[1])
(run,) = client.search_runs(["1"], f"tags.`xspec.execution_id` = '{sys.argv[2]}'")
print(run.info.artifact_uri)
print(open(client.download_artifacts(run.info.run_id, "spec.json")).read())
"""
    uri, spec = python("-c", look, f"sqlite:///{moved.path}/mlflow.db", execution_id).splitlines()
    assert Path(uri).is_relative_to(moved.path / "artifacts")
    assert json.loads(spec)["k"] == 2
    assert project_all(moved) == 0


def test_a_deleted_database_is_made_again(maker: Any, database: Any) -> None:
    maker.execution()
    project_all(maker.store)
    once = database.counts()
    database.path.unlink()
    assert project_all(maker.store) == 1
    assert database.counts() == once


def test_killed_at_every_point_and_projected_again(
    maker: Any, database: Any, tmp_path: Path, python: Any
) -> None:
    maker.execution(["+-", "?+"])
    work = tmp_path / "work"
    work.mkdir()
    ends = json.loads(python(str(KILLER), str(maker.store.path), str(work)).splitlines()[-1])
    whole, *killed, last = ends
    assert (whole["end"], last["end"]) == (0, 0)
    assert len(killed) >= 9
    assert {end["end"] for end in killed} == {-9}
    assert {end["again"] for end in ends} == {0}
    for end in killed:
        for part in ("counts", "statuses", "artifacts"):
            assert end[part] == whole[part], end["kill_at"]


def test_four_processes_project_a_fresh_store_at_once(maker: Any, zygote: Any) -> None:
    for i in range(3):
        maker.execution(arm=f"arm-{i}", sampling={"seed": i})
    ended = zygote.at_once(maker.store.path, 4)
    assert [code for code, _ in ended] == [0, 0, 0, 0], ended
    marks = projected_marks(maker.store.path)
    assert marks is not None
    assert len(marks) == 3
    assert all(marks.values())
    assert pending(maker.store) == []


def test_a_hundred_executions(maker: Any, database: Any) -> None:
    for i in range(100):
        maker.execution(["+-"], arm=f"arm-{i}", sampling={"seed": i})
    assert project_all(maker.store) == 100
    assert database.counts()["runs"] == 200
    assert project_all(maker.store) == 0


def test_no_key_reaches_the_store(
    maker: Any, database: Any, canary: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project, "run_tracking_process", RUN_TRACKING_PROCESS)
    maker.execution()
    project_all(maker.store)
    assert not any(name.endswith(("KEY", "TOKEN")) for name in tracking_environment(os.environ))
    for path in maker.store.path.rglob("*"):
        assert not path.is_file() or canary not in path.read_bytes(), path


def test_a_failure_is_one_line_and_mended_by_the_next(maker: Any, database: Any) -> None:
    maker.execution()
    whole = database.path.read_bytes()
    database.path.write_bytes(b"this is no database" * 100)
    with pytest.raises(project.ProjectionFailed, match="could not be brought up to date") as failure:
        project_all(maker.store)
    assert "\n" not in str(failure.value)
    database.path.write_bytes(whole)
    assert project_all(maker.store) == 1


def test_an_empty_store_has_nothing_pending(store: Store) -> None:
    assert project_all(store) == 0
    assert not (store.path / "mlflow.db").exists()
