"""Going on with an execution: exactly what is missing is run, and only in the same surroundings."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from xspec.spec.compose import conf_dir


def _command(kit: Any, server: Any, *more: str) -> list[str]:
    return ["k=2", "benchmark.limit=3", *kit.LAB, *server.overrides, *more]


def _forget(folder: Any, places: set[tuple[int, str]]) -> None:
    """Takes trial rows out of the journal, as if they had never been finished."""
    path = folder.journal_path(1)
    kept = []
    for line in path.read_bytes().splitlines(keepends=True):
        row = json.loads(line)
        if row["kind"] != "trial" or (row["run"], row["task"]) not in places:
            kept.append(line)
    path.write_bytes(b"".join(kept))


def test_three_missing_of_three_hundred_are_the_three_that_run(lab: Any, kit: Any) -> None:
    server = kit.ChatServer(lambda n, request: (200, kit.completion()))
    missing = {(0, "lab.task_17"), (1, "lab.task_99"), (2, "lab.task_0")}
    with server.serving():
        command = ["k=3", *kit.LAB, *server.overrides, "workers=8"]
        assert lab.here(*command, LAB_KEY=kit.KEY).code == 0
        assert len(server.requests) == 300
        _forget(lab.only(), missing)
        before = lab.only().progress().trials
        assert len(before) == 297

        assert lab.here(*command, LAB_KEY=kit.KEY).code == 0
    assert len(server.requests) == 303
    asked = [request["messages"][1]["content"] for request in server.requests[300:]]
    assert sorted(asked) == [f"Bring the total to {total}." for total in (3, 300, 54)]
    after = lab.only().progress().trials
    assert {place: trial for place, trial in after.items() if place not in missing} == before
    assert {after[place].take for place in missing} == {1}
    (arm,) = lab.report()["arms"]
    assert arm["trials"] == {"pass": 0, "fail": 300, "invalid": 0, "missing": 0}


def test_finished_spec_prints_its_result_and_sends_nothing(lab: Any, kit: Any) -> None:
    server = kit.ChatServer(lambda n, request: (200, kit.completion()))
    with server.serving():
        command = _command(kit, server)
        first = lab.here(*command, LAB_KEY=kit.KEY)
        again = lab.here(*command)
    assert (first.code, again.code) == (0, 0)
    assert len(server.requests) == 6
    assert again.out == first.out
    assert "nothing was sent" in again.err
    assert f"reproduce {lab.only().info.spec_id}" in again.err
    assert lab.only().stints() == [1]


def test_reproduce_begins_another_and_an_interrupted_one_is_gone_on_with(lab: Any, kit: Any) -> None:
    down = False
    server = kit.ChatServer(
        lambda n, request: (401, {"error": {"message": "no"}}) if down else (200, kit.completion())
    )
    with server.serving():
        command = _command(kit, server)
        assert lab.here(*command, LAB_KEY=kit.KEY).code == 0
        spec_id = lab.only().info.spec_id
        down = True
        assert lab.here("reproduce", spec_id, LAB_KEY=kit.KEY).code == 3
        first, second = lab.executions(spec_id)
        assert (len(first.progress().trials), len(second.progress().trials)) == (6, 0)
        down = False
        sent = len(server.requests)
        assert lab.here(*command, LAB_KEY=kit.KEY).code == 0
    assert len(server.requests) == sent + 6
    assert len(second.progress().trials) == 6
    assert len(lab.executions()) == 2


def test_retry_invalid_runs_those_and_keeps_the_old_rows(lab: Any, kit: Any) -> None:
    down = True
    server = kit.ChatServer(
        lambda n, request: (
            (500, {"error": {"message": "down"}})
            if down and request["messages"][1]["content"] == "Bring the total to 6."
            else (200, kit.completion())
        )
    )
    with server.serving():
        command = _command(kit, server)
        assert lab.here(*command, LAB_KEY=kit.KEY).code == 1
        before = kit.outcomes(lab.only())
        assert sorted(before.values()).count(("invalid", "route:server_error")) == 2
        sent = len(server.requests)
        assert lab.here(*command, LAB_KEY=kit.KEY).code == 1, "without the flag invalid trials stay"
        assert len(server.requests) == sent
        down = False
        assert lab.here(*command, "--retry-invalid", LAB_KEY=kit.KEY).code == 0
    assert len(server.requests) == sent + 2
    progress = lab.only().progress()
    assert progress.superseded == 2
    assert len(list(lab.only().rows("trial"))) == 8
    assert set(kit.outcomes(lab.only()).values()) == {("fail", "verdict")}
    (arm,) = lab.report()["arms"]
    assert arm["trials"] == {"pass": 0, "fail": 6, "invalid": 0, "missing": 0}
    assert arm["retry_count"] == 0, "retries of a superseded trial are not those of the current one"


def test_another_key_is_refused_until_accepted_and_then_reported(lab: Any, kit: Any) -> None:
    server = kit.ChatServer(lambda n, request: (200, kit.completion()))
    with server.serving():
        command = _command(kit, server)
        lab.here(*command, LAB_KEY=kit.KEY)
        _forget(lab.only(), {(1, "lab.task_2")})
        other = "another-Key-of-the-Canary-kind-815"
        refused = lab.here(*command, LAB_KEY=other)
        assert refused.code == 2
        assert "keys.LAB_KEY: kf-" in refused.err
        assert "--accept-lock-change" in refused.err
        assert refused.err.count("\n") == 1
        assert len(server.requests) == 6
        assert lab.only().stints() == [1]

        accepted = lab.here(*command, "--accept-lock-change", LAB_KEY=other)
    assert accepted.code == 0
    assert len(server.requests) == 7
    assert "resumed under another lock" in " ".join(accepted.out.split())
    (arm,) = lab.report()["arms"]
    assert arm["executions"][0]["lock_changes"] == ["stint 2: keys differs"]
    assert other not in "".join(p.read_text(errors="replace") for p in lab.root.rglob("*") if p.is_file())


def test_torn_tail_is_dropped_and_its_trial_run_again(lab: Any, kit: Any) -> None:
    server = kit.ChatServer(lambda n, request: (200, kit.completion()))
    with server.serving():
        command = _command(kit, server)
        lab.here(*command, LAB_KEY=kit.KEY)
        journal = lab.only().journal_path(1)
        journal.write_bytes(journal.read_bytes()[:-10])
        assert len(lab.only().progress().trials) == 5
        assert lab.here(*command, LAB_KEY=kit.KEY).code == 0
    assert len(server.requests) == 7
    assert len(lab.only().progress().trials) == 6
    assert journal.read_bytes()[-1:] != b"\n", "an old journal is never written to again"


def test_spec_file_edited_between_stints_is_refused(lab: Any, kit: Any) -> None:
    server = kit.ChatServer(lambda n, request: (200, kit.completion()))
    with server.serving():
        command = _command(kit, server)
        lab.here(*command, LAB_KEY=kit.KEY)
        _forget(lab.only(), {(0, "lab.task_0")})
        path = lab.store.spec_path(lab.only().info.spec_id)
        path.write_bytes(path.read_bytes().replace(b'"temperature":0', b'"temperature":1'))
        for words in (command, ["reproduce", path.stem], ["report"], ["show", path.stem]):
            refused = lab.here(*words, LAB_KEY=kit.KEY)
            assert refused.code == 2, words
            assert "was changed; restore or delete it" in refused.err
            assert refused.err.count("\n") == 1
    assert len(server.requests) == 6


@pytest.mark.parametrize("where", ["manifest", "prompt"])
def test_blob_changed_between_stints_is_refused(lab: Any, kit: Any, where: str) -> None:
    server = kit.ChatServer(lambda n, request: (200, kit.completion()))
    with server.serving():
        command = _command(kit, server)
        lab.here(*command, LAB_KEY=kit.KEY)
        spec = lab.store.spec(lab.only().info.spec_id)
        digest = spec.benchmark.manifest if where == "manifest" else spec.agent.prompt
        path = lab.store.blob_path(digest)
        path.write_bytes(path.read_bytes().replace(b"a", b"b"))
        refused = lab.here("reproduce", spec.id, LAB_KEY=kit.KEY)
    assert refused.code == 2
    assert "was changed" in refused.err
    assert len(server.requests) == 6
    assert len(lab.executions()) == 1


def test_configuration_edited_while_a_sweep_composes_is_refused(
    lab: Any, kit: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import xspec.cli.run

    conf = tmp_path / "conf"
    shutil.copytree(conf_dir(), conf)
    compile_plain = xspec.cli.run.compile_plain

    def edit_after_the_first(*given: Any) -> Any:
        compiled = compile_plain(*given)
        with (conf / "guide" / "checklist.yaml").open("a") as file:
            file.write("\n# edited\n")
        return compiled

    monkeypatch.setattr(xspec.cli.run, "compile_plain", edit_after_the_first)
    refused = lab.here("+arm=baseline,guided", "benchmark.limit=1", "-m", *kit.LAB, XSPEC_CONF=str(conf))
    assert refused.code == 2
    assert "edited while the sweep was being composed" in refused.err
    assert refused.err.count("\n") == 1
    assert lab.executions() == []


def test_sweep_of_arms_is_one_interleaved_execution_each(lab: Any, kit: Any) -> None:
    command = ["+arm=baseline,guided,floating,guided_floating", "-m", "k=2", "benchmark.limit=4", *kit.LAB]
    finished = lab.here(*command, *kit.faults())
    assert finished.code == 0, finished.err
    report = lab.report()
    assert {arm["arm"] for arm in report["arms"]} == {"baseline", "guided", "floating", "guided_floating"}
    assert {arm["trials"]["missing"] for arm in report["arms"]} == {0}
    begun = sorted(
        (row["at"], folder.info.arm, row["run"], row["task"])
        for folder in lab.executions()
        for row in folder.rows("attempt_started")
        if row["step"] == 0
    )
    last_of_run_0 = max(at for at, _, run, _ in begun if run == 0)
    late = {arm for at, arm, run, _ in begun if at >= last_of_run_0}
    assert len({arm for _, arm, _, _ in begun[:16]}) == 4, f"arms ran one after another; late: {late}"
