"""Two processes never work on one execution, and parallel starts never share one."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from xspec.experiment.lease import Lease, LeaseHeld
from xspec.records.executions import ExecutionFolder


def test_second_process_on_a_spec_is_refused_while_the_first_goes_on(lab: Any, kit: Any) -> None:
    command = ["k=3", "benchmark.limit=20", "workers=2", *kit.LAB, *kit.faults(latency_s=0.03)]
    first = lab.start(*command)
    first.until(lambda: lab.executions() and kit.kinds(lab.only())["trial"] >= 2, "two trials")
    refused = lab.here(*command)
    assert first.process.poll() is None, "the first one was still at work"
    assert refused.code == 2
    assert refused.err.startswith(f"xspec: another process works on execution {lab.only().info.execution_id}")
    assert f"process {first.process.pid} on " in refused.err
    assert refused.err.count("\n") == 1
    assert first.wait().code == 0
    assert lab.only().stints() == [1]
    assert len(lab.only().progress().trials) == 60


def test_parallel_starts_in_one_store(lab: Any, kit: Any) -> None:
    """Three specs and twice the same one, all at once in the same second."""
    base = ["benchmark.limit=3", "workers=2", *kit.LAB, *kit.faults(latency_s=0.1)]
    running = [lab.start(f"k={k}", *base) for k in (1, 2, 3, 3)]
    ended = [one.wait() for one in running]
    assert [one.code for one in ended[:2]] == [0, 0], [one.err for one in ended]
    same = {one.code: one for one in ended[2:]}
    assert set(same) <= {0, 2}
    assert 0 in same
    if 2 in same:  # else one began after the other had ended
        assert "another process works on" in same[2].err
        assert same[2].err.count("\n") == 1
    folders = lab.executions()
    assert len({folder.info.spec_id for folder in folders}) == len(folders) == 3
    for folder in folders:
        k = lab.store.spec(folder.info.spec_id).k
        assert len(folder.progress().trials) == 3 * k
        assert len(list(folder.rows("trial"))) == 3 * k
        assert {row["spec_id"] for row in folder.rows("attempt_started")} == {folder.info.spec_id}


def test_parallel_starts_of_one_benchmark_in_a_fresh_store(
    tmp_path_factory: pytest.TempPathFactory, lab: Any, kit: Any
) -> None:
    """Nothing is compiled yet: all of them ask the benchmark and write the same blobs."""
    fresh = type(lab)(tmp_path_factory.mktemp("fresh"), tmp_path_factory.mktemp("store") / "new")
    try:
        running = [fresh.start(f"k={k}", "benchmark.limit=2", *kit.LAB, *kit.faults()) for k in (1, 2, 3)]
        for one in running:
            ended = one.wait()
            assert ended.code == 0, ended.err
        assert len(fresh.executions()) == 3
    finally:
        fresh.end_all()


def test_executions_of_the_same_second_have_folders_of_their_own(
    lab: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.time", lambda: 1_800_000_000.0)
    made = [ExecutionFolder.create(lab.store, "xs-0123456789abcdef", None, []) for _ in range(50)]
    assert len({folder.path for folder in made}) == 50


def test_lease_is_free_again_when_its_holder_ends(lab: Any, kit: Any) -> None:
    path = lab.root / "lease"
    with Lease(path, "execution x"):
        assert json.loads(path.read_text())["pid"] > 0
        with (
            pytest.raises(LeaseHeld, match="another process works on execution x"),
            Lease(path, "execution x"),
        ):
            raise AssertionError("the lease was given twice")
    with Lease(path, "execution x"):
        pass


def test_refused_start_leaves_no_folder(make_lab: Callable[[], Any], kit: Any) -> None:
    """A lock that cannot be made, in an execution that was just begun: nothing is left half-written."""
    lab = make_lab()
    server = kit.ChatServer(lambda n, request: (200, kit.completion()))
    with server.serving():
        refused = lab.here("k=1", "benchmark.limit=1", *kit.LAB, *server.overrides)
    assert refused.code == 2
    assert "LAB_KEY is not set" in refused.err
    assert lab.executions() == []
    assert not [p for p in (lab.store_path / "executions").iterdir() if p.is_dir()]
    assert server.requests == []
