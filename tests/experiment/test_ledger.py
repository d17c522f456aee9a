"""The journal's ledger is what the server saw, under heavy faults, to the last request."""

import asyncio
import json
import urllib.request
from collections import Counter
from typing import Any

import pytest

from xspec.rehearsal.process import RehearsalServer

K, TASKS = 3, 25


@pytest.fixture
def stats(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What each simulated model counted, asked just before it is ended."""
    seen: list[dict[str, Any]] = []
    aclose = RehearsalServer.aclose

    def ask(base_url: str) -> None:
        with urllib.request.urlopen(f"{base_url}/stats", timeout=20) as reply:
            seen.append(json.loads(reply.read()))

    async def ask_first(self: RehearsalServer) -> None:
        await asyncio.to_thread(ask, self.base_url)
        await aclose(self)

    monkeypatch.setattr(RehearsalServer, "aclose", ask_first)
    return seen


def test_attempts_are_the_server_s_requests_and_all_counts_reconcile(
    lab: Any, kit: Any, stats: list[dict[str, Any]]
) -> None:
    heavy = kit.faults(
        too_many_requests=0.1,
        server_error=0.1,
        reset=0.05,
        truncated_json=0.05,
        stall=0.03,
        stall_s=3,
        other_model=0.01,
        garbled_arguments=0.05,
    )
    command = [f"k={K}", f"benchmark.limit={TASKS}", *kit.LAB, *heavy, "route.timeout_s=1.5", "workers=16"]
    finished = lab.here(*command)
    assert finished.code in (0, 1), finished.err
    (served,) = stats
    folder = lab.only()

    started = list(folder.rows("attempt_started"))
    ended = list(folder.rows("attempt"))
    assert served["requests"] == len(started) == len(ended)
    (by_member,) = served["executions"].values()
    statuses: Counter[str] = Counter()
    for counts in by_member.values():
        statuses.update(counts)
    for status in ("200", "429"):
        assert statuses[status] <= sum(str(row["status"]) == status for row in ended)
    assert statuses["429"] == sum(row["status"] == 429 for row in ended)
    assert statuses["reset"] > 0, "the faults were heavy enough to matter"
    errors = Counter(row["error"] for row in ended)
    assert errors["rate_limited"] == statuses["429"]
    assert errors["server_error"] == sum(statuses[status] for status in ("500", "502", "503"))

    trials = folder.progress().trials.values()
    assert sum(trial.attempts for trial in trials) == len(started)
    assert all(trial.retry_count == trial.attempts - trial.calls for trial in trials)
    calls = {(r["run"], r["task"], r["take"], r["step"], r["call"]) for r in started}
    assert sum(trial.calls for trial in trials) == len(calls)
    (arm,) = lab.report()["arms"]
    assert sum(arm["trials"].values()) == K * TASKS
    assert arm["trials"]["missing"] == 0
    assert arm["trials"]["invalid"] > 0, "the faults were heavy enough to matter"
    assert arm["retry_count"] == len(started) - len(calls)
    tokens = sum((r["prompt_tokens"] or 0) + (r["completion_tokens"] or 0) for r in ended)
    assert arm["total_tokens"] == tokens


def test_every_attempt_row_is_complete(lab: Any, kit: Any, stats: list[dict[str, Any]]) -> None:
    lab.here("k=2", "benchmark.limit=5", *kit.LAB, *kit.faults(server_error=0.2))
    folder = lab.only()
    key = ("run", "task", "take", "step", "call", "attempt", "member")
    started = {tuple(row[k] for k in key): row for row in folder.rows("attempt_started")}
    ended = list(folder.rows("attempt"))
    assert len(started) == len(ended)
    for row in ended:
        begun = started[tuple(row[k] for k in key)]
        assert begun["at"] <= row["at"]
        assert begun["spec_id"] == folder.info.spec_id
        assert row["status"] in (200, 500, 502, 503)
        assert (row["error"] is None) == (row["status"] == 200)
        assert row["waited_s"] >= 0
        assert row["latency_s"] > 0
        if row["status"] == 200:
            assert row["served_model"] == "rehearsal-1"
    retried = [row for row in ended if row["attempt"] > 0]
    assert retried
    assert all(row["waited_s"] > 0 for row in retried), "the wait stands on the attempt that it came before"


@pytest.mark.parametrize("odd", [None, "7", 7.5, -1, True, [7]], ids=repr)
def test_tokens_that_no_reply_counts_are_unknown_and_not_0(lab: Any, kit: Any, odd: Any) -> None:
    reply = {**kit.completion(), "usage": {"prompt_tokens": odd, "completion_tokens": odd}}
    server = kit.ChatServer(lambda n, request: (200, reply))
    with server.serving():
        finished = lab.here("k=1", "benchmark.limit=2", *kit.LAB, *server.overrides, LAB_KEY=kit.KEY)
    assert finished.code == 0, finished.err
    assert "unknown" in finished.out
    (arm,) = lab.report()["arms"]
    assert arm["total_tokens"] is None


def test_replies_that_do_not_count_their_tokens_are_counted(lab: Any, kit: Any) -> None:
    silent = {**kit.completion(), "usage": None}
    server = kit.ChatServer(lambda n, request: (200, silent if n else kit.completion()))
    with server.serving():
        finished = lab.here("k=1", "benchmark.limit=3", *kit.LAB, *server.overrides, LAB_KEY=kit.KEY)
    assert "2 of 3 replies did not say how many tokens they took" in " ".join(finished.out.split())
    (arm,) = lab.report()["arms"]
    assert arm["total_tokens"] == 9
