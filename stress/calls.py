"""Thousands of model calls under faults: what the server counted, what the ledger holds, what the trials say."""

import asyncio
import contextlib
import io
import json
import math
import os
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stress.line import Line, equal
from xspec.__main__ import main
from xspec.records.executions import executions_of
from xspec.rehearsal.process import RehearsalServer
from xspec.spec.store import Store

RATES = {
    "too_many_requests": 0.10,
    "server_error": 0.05,
    "stall": 0.02,
    "truncated_json": 0.01,
    "reset": 0.01,
    "other_model": 0.01,
    "garbled_arguments": 0,
    "retry_after_s": 0.02,
    "stall_s": 7,
    "latency_s": 0,
}
CALLS_A_TRIAL = 4.1
"""Fewer than a trial makes on average, so that a run makes at least the calls it was asked for."""
TASKS = [
    *(f"banking.user_task_{n}" for n in (0, 1, 2, 3, 4, 7, 11, 12, 13, 14, 15)),
    *(f"slack.user_task_{n}" for n in range(21)),
]


def run(root: Path, *, calls: int) -> list[Line]:
    """At least `calls` calls, and every count against every other."""
    k = math.ceil(calls / CALLS_A_TRIAL / len(TASKS))
    command = [
        *(f"k={k}", f"benchmark.tasks=[{','.join(TASKS)}]", f"store={root / 'calls'}", "workers=24"),
        *(f"provider.faults.{name}={value}" for name, value in RATES.items()),
        *("route.timeout_s=3", "route.retry.backoff_s=0.01", "route.max_wait_s=5", "max_invalid_share=1"),
    ]
    with _counted() as counts, _mlflow_later(), contextlib.redirect_stdout(io.StringIO()):
        code = main(command)
    (folder,) = executions_of(Store(root / "calls"))
    started = sum(1 for _ in folder.rows("attempt_started"))
    ended = list(folder.rows("attempt"))
    trials = list(folder.progress().trials.values())
    (served,) = counts
    total = k * len(TASKS)
    calls_made = len({(r["run"], r["task"], r["take"], r["step"], r["call"]) for r in ended})
    outcomes = Counter(trial.outcome for trial in trials)
    missing = total - len(trials)
    lines = [
        Line("calls", "calls made", f"at least {calls}", str(calls_made), calls_made >= calls),
        equal("calls", "exit code", 0, code),
        equal("calls", "requests the server counted = attempts begun", served["requests"], started),
        equal("calls", "attempts begun = attempts ended", started, len(ended)),
        equal(
            "calls", "attempts of all trials = attempts ended", len(ended), sum(t.attempts for t in trials)
        ),
        equal(
            "calls", "retries = attempts - calls", len(ended) - calls_made, sum(t.retry_count for t in trials)
        ),
        equal(
            "calls",
            f"pass {outcomes['pass']} + fail {outcomes['fail']} + invalid {outcomes['invalid']} + missing {missing}",
            total,
            sum(outcomes.values()) + missing,
        ),
        *_by_status(served, ended),
    ]
    drifted = {(r["run"], r["task"], r["take"]) for r in ended if r["drift"]}
    invalid = {(t.run, t.task, t.take) for t in trials if t.outcome == "invalid"}
    lines.append(equal("calls", "trials with another served model that count", 0, len(drifted - invalid)))
    return lines


def _by_status(served: dict[str, Any], ended: list[dict[str, Any]]) -> list[Line]:
    """Server's status, or what it did instead of answering, against the ledger's."""
    sent, errors = Counter(served["statuses"]), Counter(row["error"] for row in ended)
    statuses = Counter(str(row["status"]) for row in ended)
    pairs = [("429", sent["429"], errors["rate_limited"])]
    pairs += [(status, sent[status], statuses[status]) for status in ("500", "502", "503")]
    pairs += [
        ("stall = timeout", sent["stall"], errors["timeout"]),
        ("reset + closed early = connection", sent["reset"] + sent["closed_early"], errors["connection"]),
        ("truncated JSON = malformed reply", sent["truncated"], errors["malformed_reply"]),
        ("200 = usable replies", sent["200"], errors[None]),
        (
            "another served model = drift",
            served["faults"].get("other_model", 0),
            sum(bool(r["drift"]) for r in ended),
        ),
    ]
    return [equal("calls", f"status {what}", left, right) for what, left, right in pairs]


@contextlib.contextmanager
def _counted() -> Iterator[list[dict[str, Any]]]:
    """What each simulated model counted, asked just before it is ended."""
    seen: list[dict[str, Any]] = []
    aclose = RehearsalServer.aclose

    def ask(base_url: str) -> None:
        with urllib.request.urlopen(f"{base_url}/stats", timeout=60) as reply:
            seen.append(json.loads(reply.read()))

    async def ask_first(self: RehearsalServer) -> None:
        await asyncio.to_thread(ask, self.base_url)
        await aclose(self)

    RehearsalServer.aclose = ask_first  # type: ignore[method-assign]
    try:
        yield seen
    finally:
        RehearsalServer.aclose = aclose  # type: ignore[method-assign]


@contextlib.contextmanager
def _mlflow_later() -> Iterator[None]:
    before = os.environ.get("XSPEC_MLFLOW")
    os.environ["XSPEC_MLFLOW"] = "later"
    try:
        yield
    finally:
        if before is None:
            del os.environ["XSPEC_MLFLOW"]
        else:
            os.environ["XSPEC_MLFLOW"] = before
