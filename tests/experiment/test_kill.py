"""SIGKILL at seeded points, then resume: nothing is lost or done twice, and the result is the uninterrupted one."""

import random
import signal
from collections.abc import Callable, Iterator
from typing import Any

import psutil
import pytest

TASKS = [
    *(f"banking.user_task_{n}" for n in (0, 1, 2, 3, 4, 7)),
    *(f"slack.user_task_{n}" for n in (0, 1, 2, 3, 4, 5)),
]
K = 2
WORKERS = 3
TRIALS = K * len(TASKS)


def _command(kit: Any) -> list[str]:
    noisy = kit.faults(
        too_many_requests=0.05,
        server_error=0.08,
        reset=0.04,
        truncated_json=0.04,
        other_model=0.005,
        garbled_arguments=0.05,
        latency_s=0.05,
    )
    return [
        f"k={K}",
        f"workers={WORKERS}",
        f"benchmark.tasks=[{','.join(TASKS)}]",
        *noisy,
        "route.retry.backoff_s=0.1",
    ]


def _finished(folder: Any) -> dict[tuple[int, str], int]:
    """The take of each finished trial. One that a broken worker spoilt is still owed its second try."""
    trials = folder.progress().trials.items()
    return {place: trial.take for place, trial in trials if trial.cause != "worker"}


def _under_way(folder: Any) -> set[tuple[int, str, int]]:
    """Takes that were begun and have no trial row."""
    begun, ended = (
        {(row["run"], row["task"], row["take"]) for row in folder.rows(kind)}
        for kind in ("attempt_started", "trial")
    )
    return begun - ended


def _rows(folder: Any) -> int:
    return sum(path.read_bytes().count(b"\n") for path in folder.path.glob("journal-*.jsonl"))


def _kill(process: psutil.Process | None) -> None:
    assert process is not None
    process.kill()


@pytest.fixture
def begun(lab: Any, kit: Any) -> Iterator[tuple[Any, Any, list[str]]]:
    """Two copies of a store with the same begun execution, so that the simulated model draws the same; the command."""
    command = _command(kit)
    lab.begin(lab.spec_id(*command))
    killed, whole = lab.copy("killed"), lab.copy("whole")
    yield killed, whole, command
    killed.end_all()


def test_killed_again_and_again_ends_like_uninterrupted(begun: tuple[Any, Any, list[str]], kit: Any) -> None:
    killed, whole, command = begun
    draw = random.Random(20261130)
    folder, kept = killed.only(), {}

    def resumed(rows: int) -> Any:
        """A new stint, when it has written that many rows; it must not have begun anything finished again."""
        nonlocal kept
        kept, before = _finished(folder), _rows(folder)
        running = killed.start(*command)
        running.until(lambda: _rows(folder) >= before + rows, f"{rows} rows")
        running.tree()
        return running

    def ended(running: Any) -> None:
        assert running.wait().code == -signal.SIGKILL
        running.assert_nothing_left()
        now = _finished(folder)
        assert {place: now.get(place) for place in kept} == kept

    # While it starts: at the moment it has the lease, before it has written a row.
    running = killed.start(*command)
    running.until(lambda: (folder.path / "lease").exists() and running.tree(), "the lease")
    _kill(running.main)
    ended(running)

    for _ in range(2):
        running = resumed(draw.randint(1, 60))
        _kill(running.main)
        ended(running)

    # A member and the zygote: replaced, and the stint goes on. Not at once, or it would look like the agent's doing.
    left = _under_way(folder)
    running = resumed(draw.randint(1, 30))
    _kill(running.until(running.members, "members")[0])
    under_way = _under_way(folder) - left
    running.until(lambda: not under_way & _under_way(folder), "the end of what was under way")
    _kill(running.zygote())
    before = _rows(folder)
    running.until(lambda: _rows(folder) >= before + 10, "rows after the death of the zygote")
    running.tree()
    _kill(running.main)
    ended(running)

    # The simulated model: without it nothing can go on, and the message says so.
    running = resumed(draw.randint(1, 20))
    _kill(running.rehearsal())
    stopped = running.wait()
    assert stopped.code == 3
    assert "the rehearsal server ended with code -9" in stopped.err
    assert "go on with" in stopped.err
    assert "Traceback" not in stopped.err
    running.assert_nothing_left()

    kept = _finished(folder)
    assert len(kept) < TRIALS, "the kills came before the end"
    last = killed.start(*command).wait()
    assert last.code in (0, 1), last.err
    assert {place: _finished(folder)[place] for place in kept} == kept

    rows = list(folder.rows("trial"))
    takes = [(row["run"], row["task"], row["take"]) for row in rows]
    assert len(takes) == len(set(takes)), "no trial row twice"
    trials = folder.progress().trials
    assert len(trials) == TRIALS
    replaced = [row for row in rows if trials[row["run"], row["task"]].take != row["take"]]
    assert {(row["outcome"], row["cause"]) for row in replaced} <= {("invalid", "worker")}
    assert folder.progress().abandoned_attempts > 0, "what the killed processes sent is owned up to"

    # A trial that was run again because its worker was killed draws anew; all others are as if nothing had been.
    whole.here(*command)
    redrawn = {(row["run"], row["task"]) for row in replaced}
    expected = kit.outcomes(whole.only())
    assert {p: o for p, o in kit.outcomes(folder).items() if p not in redrawn} == {
        p: o for p, o in expected.items() if p not in redrawn
    }
    assert len(expected) == TRIALS
    assert len(redrawn) <= 2 * WORKERS
    (arm,) = killed.report()["arms"]
    assert sum(arm["trials"].values()) == TRIALS
    assert arm["retry_count"] == sum(trial.retry_count for trial in trials.values())


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_interrupt_ends_in_order_and_resume_finishes(
    make_lab: Callable[[], Any], kit: Any, signum: signal.Signals
) -> None:
    lab = make_lab()
    command = ["k=4", "benchmark.limit=20", "workers=4", *kit.LAB, *kit.faults(latency_s=0.05)]
    running = lab.start(*command)
    running.until(lambda: lab.executions() and kit.kinds(lab.only())["trial"] >= 5, "five trials")
    running.tree()
    running.process.send_signal(signum)
    ended = running.wait(20)
    assert ended.code == 130
    assert "interrupted; go on with python -m xspec k=4" in ended.err
    assert "of 80 trials finished" in ended.err
    assert "Traceback" not in ended.err
    running.assert_nothing_left(5)
    counts = kit.kinds(lab.only())
    assert counts["attempt_started"] == counts["attempt"], "attempts under way were owned up to"
    kept = lab.only().progress().trials
    assert 5 <= len(kept) < 80

    assert lab.here(*command).code == 0
    trials = lab.only().progress().trials
    assert len(trials) == 80
    assert {place: trials[place] for place in kept} == kept
