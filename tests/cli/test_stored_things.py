"""What happens to a store, or to the output, between commands: each is told in plain words."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from xspec.__main__ import main
from xspec.records.executions import executions_of
from xspec.spec.store import Store

RUN = ["benchmark=choices", "k=1", "benchmark.limit=1", "provider.faults.latency_s=0"]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with one small execution."""
    store = tmp_path_factory.mktemp("ran") / "store"
    assert main([*RUN, f"store={store}"]) in (0, 1)
    return store


@pytest.fixture
def store(ran: Path, tmp_path: Path) -> Path:
    """A copy of it, to be spoilt."""
    shutil.copytree(ran, tmp_path / "store")
    return tmp_path / "store"


@pytest.mark.parametrize(
    "verb",
    [["report"], ["report", "--format", "json"], ["show", "xs-"], ["diff", "xs-", "k=3"], RUN],
    ids=" ".join,
)
def test_a_reader_that_has_seen_enough(ran: Path, tmp_path: Path, verb: list[str]) -> None:
    """As `| head -1`, but surely before the first line."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "xspec", *verb, f"store={ran}"]
    done = subprocess.run(
        command, stdout=writing, stderr=subprocess.PIPE, text=True, cwd=tmp_path, timeout=120, check=False
    )
    os.close(writing)
    assert done.returncode in ((0, 1) if verb is RUN else (0,)), done.stderr
    assert "Error" not in done.stderr
    assert "Traceback" not in done.stderr


def test_long_task_lists_differ_in_few_words(ran: Path, capsys: pytest.CaptureFixture[str]) -> None:
    few, many = ("benchmark=choices benchmark.limit=2", "benchmark=choices benchmark.limit=24")
    assert main(["diff", few, many, f"store={ran}"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "benchmark.tasks" in line]
    assert "22 added" in line
    assert "and 17 more" in line
    assert len(line) < 200


@pytest.mark.parametrize("folder", ["specs", "blobs"])
@pytest.mark.parametrize("command", [["report"], ["show", "xs-0"], RUN], ids=" ".join)
def test_a_store_that_was_copied_in_part(
    store: Path, capsys: pytest.CaptureFixture[str], command: list[str], folder: str
) -> None:
    shutil.rmtree(store / folder)
    assert main([*command, f"store={store}"]) == 2
    told = capsys.readouterr()
    assert told.err.count("\n") == 1
    assert f"has no folder {folder}/" in told.err
    assert told.out == ""


def test_a_folder_that_is_no_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "photo.jpg").write_text("")
    assert main(["report", f"store={tmp_path}"]) == 2
    assert "has no store.json" in capsys.readouterr().err


def test_a_deleted_lock_is_said_in_the_report(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder,) = executions_of(Store(store))
    folder.lock_path(1).unlink()
    assert main(["report", f"store={store}"]) == 0
    assert "the lock of stint 1 was deleted or spoilt" in " ".join(capsys.readouterr().out.split())


def test_pacing_alone_goes_into_lock_and_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The folder where processes meet cannot be used: the pace of this one is its own."""
    (tmp_path / "run").mkdir(mode=0o700)
    (tmp_path / "run" / "xspec").mkdir(mode=0o777)
    (tmp_path / "run" / "xspec").chmod(0o777)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("SOME_KEY", "some-key-of-no-value")
    dead = ["provider.base_url=http://127.0.0.1:9/v1", "provider.model=m-2026-01-01"]
    more = [*dead, "provider.api_key_env=SOME_KEY", "route.retry.max_attempts=1"]
    assert main([*RUN[:-1], "provider=openai_compatible", *more, f"store={tmp_path / 'store'}"]) == 1
    told = " ".join(capsys.readouterr().out.split())
    assert "paced itself without counting other processes of the same key" in told
    (folder,) = executions_of(Store(tmp_path / "store"))
    assert "only this user" in folder.lock(1)["pacing_alone"]


def test_a_reference_to_nothing_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*RUN, "sampling.seed='${nowhere}'", f"store={tmp_path / 's'}"]) == 2
    told = capsys.readouterr().err
    assert "sampling.seed refers to nowhere" in told
    assert told.count("\n") == 1
