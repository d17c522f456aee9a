"""`python -m stress`: its part of hostile replies holds, and the table is there as JSON too."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from xspec.cli import outcome
from xspec.errors import DiskFailed, StoreError
from xspec.experiment.execute import SweepEnd
from xspec.spec.store import Store

ROOT = Path(__file__).parents[2]


def test_hostile_replies() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "stress", "replies"], cwd=ROOT, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stdout
    table, _, rest = done.stdout.partition("\n{")
    assert "WRONG" not in table
    lines = json.loads("{" + rest)["lines"]
    assert len(lines) > 30
    assert all(line["ok"] for line in lines)


def test_an_unknown_part() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "stress", "nothing"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "there is no part nothing" in done.stderr


def test_a_report_that_cannot_be_made_hides_neither_the_stop_nor_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A disk that filled up in the middle of an execution is full for the report's tables too."""

    def full(*given: object, **named: object) -> object:
        raise StoreError("parquet cannot be written (No space left on device)")

    class Arm:
        trials = (1,)
        already_finished, complete = False, True

        @staticmethod
        def exit_code() -> int:
            return 0

        class compiled:
            arm, command = None, ("k=2",)

            class spec:
                id = "xs-0"

    monkeypatch.setattr(outcome, "load_records", full)
    end = SweepEnd([Arm()], DiskFailed("cannot write to journal-1.jsonl", "No space left on device"))  # type: ignore[list-item]
    assert outcome.tell_end(end, Store(tmp_path / "store")) == 3
    said = capsys.readouterr().err
    assert "stopped: cannot write to journal-1.jsonl: No space left on device" in said
    assert "go on with python -m xspec k=2" in said
    assert "no report: " in said
