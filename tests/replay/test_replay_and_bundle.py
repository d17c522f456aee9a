"""A stored execution is served again without a model; a bundle carries a spec to another machine."""

import json
import shutil
from pathlib import Path

import pytest

from xspec.__main__ import main
from xspec.errors import StoreError
from xspec.records.executions import ExecutionFolder, executions_of
from xspec.spec.bundle import bundle, unbundle
from xspec.spec.store import Store

TASKS = "benchmark.tasks=[banking.user_task_1,banking.user_task_3,slack.user_task_0,workspace.user_task_1]"


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with one floating, guided execution of four tasks, faults and garbled arguments included."""
    store = tmp_path_factory.mktemp("replay") / "store"
    faults = [
        "provider.faults.garbled_arguments=0.2",
        "provider.behaviour.detour=0.3",
        "route.granularity=attempt",
    ]
    assert main([TASKS, "k=3", "+arm=guided_floating", *faults, f"store={store}"]) in (0, 1)
    return store


def only(store: Path) -> ExecutionFolder:
    (folder,) = executions_of(Store(store))
    return folder


def test_every_trial_replays_identically(executed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = only(executed)
    assert main(["replay", folder.path.name, "--store", str(executed)]) == 0
    replayable = [t for t in folder.progress().trials.values() if t.ended != "worker_broke"]
    assert f"{len(replayable)} of {len(replayable)} trials replayed identically" in capsys.readouterr().out
    assert json.loads((folder.path / "replay.json").read_bytes())["identical"] == len(replayable)


def test_one_trial_by_name(executed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = f"{only(executed).path.name}/1/slack.user_task_0"
    assert main(["replay", name, "--store", str(executed)]) == 0
    assert "1 of 1" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (b'"passed":true', b'"passed":false', "the verdict is True, it was False"),
        (b'"request_digest":"sha256:', b'"request_digest":"sha256:00', "another digest"),
        (
            b'"role":"tool","tool_call_id":"',
            b'"role":"tool","tool_call_id":"x',
            "tool_call_id of a tool message differs at character 0",
        ),
    ],
)
def test_the_first_difference_is_shown(
    executed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], old: bytes, new: bytes, said: str
) -> None:
    store = tmp_path / "store"
    shutil.copytree(executed, store)
    journal = only(store).journal_path(1)
    lines = journal.read_bytes().splitlines(keepends=True)
    kinds = (b'{"kind":"trial"', b'{"kind":"step"')
    journal.write_bytes(b"".join(x.replace(old, new) if x.startswith(kinds) else x for x in lines))
    assert main(["replay", only(store).path.name, "--store", str(store)]) == 1
    assert said in capsys.readouterr().out


@pytest.mark.parametrize("what", ["ex-nothing", "ex-2/0/nothing", "ex-2/x/slack.user_task_0"])
def test_what_is_not_there_is_one_line(executed: Path, capsys: pytest.CaptureFixture[str], what: str) -> None:
    assert main(["replay", what, "--store", str(executed)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_bundle_runs_in_an_empty_store_without_conf(
    executed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spec_id = only(executed).info.spec_id
    file = tmp_path / "spec.json"
    assert main(["export", "spec", spec_id[:8], "-o", str(file), "--store", str(executed)]) == 0
    monkeypatch.setenv("XSPEC_CONF", str(tmp_path / "gone"))
    elsewhere = tmp_path / "elsewhere"
    assert main(["reproduce", str(file), "--store", str(elsewhere)]) in (0, 1)
    assert only(elsewhere).info.spec_id == spec_id
    assert len(only(elsewhere).progress().trials) == 12
    assert Store(elsewhere).spec_bytes(spec_id) == Store(executed).spec_bytes(spec_id)
    assert main(["reproduce", spec_id, "--store", str(elsewhere)]) in (0, 1)
    assert len(executions_of(Store(elsewhere))) == 2, "reproduce always begins a new execution"
    assert "versions, data and keys are the same" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda c: c | {"xspec_bundle": 9}, "update xspec"),
        (lambda c: c | {"spec": c["spec"].replace('"k":3', '"k":4')}, "was changed"),
        (lambda c: c | {"blobs": dict.fromkeys(c["blobs"], "x")}, "was changed"),
        (lambda c: c | {"blobs": dict(list(c["blobs"].items())[1:])}, "lacks 1"),
        (lambda c: {"spec": 3}, "not a bundle"),
    ],
)
def test_a_changed_bundle_is_refused_and_leaves_nothing(
    executed: Path, tmp_path: Path, change, said: str
) -> None:  # type: ignore[no-untyped-def]
    content = json.loads(bundle(Store(executed), only(executed).info.spec_id))
    store = Store(tmp_path / "new")
    with pytest.raises(StoreError, match=said):
        unbundle(store, json.dumps(change(content)).encode(), "file.json")
    assert not list((store.path / "specs").iterdir())
    assert not list((store.path / "blobs").iterdir())


def test_binary_blobs_survive(tmp_path: Path) -> None:
    from xspec.spec.bundle import _bytes, _text

    for data in (b"\xff\x00\x80", "é\r\n".encode(), b""):
        assert _bytes(_text(data)) == data
