"""A run that costs money tells what it will take, and begins only after a yes."""

import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ESTIMATE = "trial_estimate={calls: 2, prompt_tokens: 1000, completion_tokens: 250, basis: a guess}"
HERE = Path(__file__).parent


@pytest.fixture
def server(kit: Any) -> Any:
    """Answers everything, and counts."""
    return kit.ChatServer(lambda number, request: (200, kit.completion("done")))


def command(kit: Any, server: Any, *more: str) -> list[str]:
    return ["k=2", "benchmark.limit=3", "confirm=true", *kit.LAB, *server.overrides, *more]


def test_without_a_terminal_or_yes_nothing_is_sent(lab: Any, kit: Any, server: Any) -> None:
    with server.serving():
        for launcher in ((), ("hydra/launcher=joblib",)):
            finished = lab.here(
                *command(kit, server, ESTIMATE, "+arm=baseline,guided", "-m", *launcher), LAB_KEY=kit.KEY
            )
            assert finished.code == 2
            (line,) = finished.err.splitlines()
            assert "12 trials, about 24 calls, 12,000 prompt and 3,000 completion tokens" in line
            assert "add --yes" in line
            assert finished.out == ""
        assert "LAB_KEY" in lab.here(*command(kit, server), "--yes").err, "a missing key comes first"
    assert server.requests == []
    assert lab.executions() == []


def test_yes_begins_and_the_cost_is_told(lab: Any, kit: Any, server: Any) -> None:
    price = ("price.prompt=2e6", "price.completion=4e6")
    with server.serving():
        run = command(kit, server, ESTIMATE, *price)
        finished = lab.here(*run, "--yes", LAB_KEY=kit.KEY)
        assert finished.code == 0, finished.err
        assert "6 trials, about 12 calls, 6,000 prompt and 1,500 completion tokens" in finished.err
        assert "estimate of 2 calls, 1,000 prompt and 250 completion tokens a trial: a guess" in finished.err
        assert "about 18,000.00, at 2e+06 and 4e+06 a million tokens" in finished.err
        assert len(server.requests) == 6
        again = lab.here(*run, LAB_KEY=kit.KEY)
        assert again.code == 0, "what is finished sends nothing, so there is nothing to agree to"
        more = lab.here(*run, "k=3", LAB_KEY=kit.KEY)
    assert more.code == 2
    assert "9 trials, about 9 calls, 63 prompt and 18 completion tokens" in more.err, (
        "as the stored trials took"
    )
    assert len(server.requests) == 6


def test_what_is_left_is_what_counts(lab: Any, kit: Any) -> None:
    server = kit.ChatServer(
        lambda n, request: (200, kit.completion("done")) if n < 4 else (401, {"error": {"message": "no"}})
    )
    with server.serving():
        run = command(kit, server, "workers=1")
        assert lab.here(*run, "--yes", LAB_KEY=kit.KEY).code == 3
        assert "nothing was sent: 2 trials" in lab.here(*run, LAB_KEY=kit.KEY).err


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("", 2)])
def test_a_terminal_is_asked(lab: Any, kit: Any, server: Any, answer: str, code: int) -> None:
    ours, theirs = pty.openpty()
    with server.serving():
        process = subprocess.Popen(
            [sys.executable, str(HERE / "lab_xspec.py"), *lab.complete(command(kit, server))],
            cwd=lab.cwd,
            env=lab.environ({"LAB_KEY": kit.KEY, "XSPEC_MLFLOW": "later"}),
            stdin=theirs,
            stderr=theirs,
            stdout=subprocess.DEVNULL,
        )
        os.close(theirs)
        os.write(ours, f"{answer}\n".encode())
        said = b""
        try:
            while data := os.read(ours, 4096):
                said += data
        except OSError:
            pass  # Linux: the other side of the terminal is closed
        finally:
            os.close(ours)
        assert process.wait(60) == code, said.decode()
    assert b"6 trials" in said
    assert b"begin? [y/N]" in said
    assert b"what a trial takes is unknown: none like these is stored" in said
    assert len(server.requests) == (6 if code == 0 else 0)
