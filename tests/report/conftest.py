"""Specs and execution records to build reports from."""

from collections.abc import Sequence
from typing import Any

import pytest

from xspec.records.rows import Outcome, Trial
from xspec.report.execution_record import ExecutionRecord
from xspec.spec.models import ExperimentSpec

OUTCOMES: dict[str, Outcome] = {"+": "pass", "-": "fail", "?": "invalid"}


def member(name: str = "a", **changes: Any) -> dict[str, Any]:
    behaviour = {
        "unstable_tasks": 0.5,
        "hopeless_tasks": 0,
        "flip_alpha": 2,
        "flip_beta": 5,
        "detour": 0.1,
        "guide_effect": 0.5,
        "replan": 0.2,
        "difficulty_seed": 1,
    }
    faults = {
        "too_many_requests": 0.01,
        "server_error": 0.01,
        "stall": 0,
        "reset": 0,
        "truncated_json": 0,
        "other_model": 0,
        "garbled_arguments": 0,
        "retry_after_s": 1,
        "stall_s": 1,
        "latency_s": 0,
    }
    return {
        "kind": "rehearsal",
        "name": name,
        "model": f"rehearsal-{name}",
        "behaviour": behaviour,
        "faults": faults,
    } | changes


def openai_member(name: str = "gpt", **changes: Any) -> dict[str, Any]:
    return {
        "kind": "openai",
        "name": name,
        "base_url": "https://api.example.com/v1",
        "path": "/chat/completions",
        "model": "gpt-4.1-2025-04-14",
        "api_key_env": "OPENAI_API_KEY",
    } | changes


def make_spec(
    *,
    tasks: Sequence[str] = ("t.0", "t.1", "t.2"),
    k: int = 2,
    members: Sequence[dict[str, Any]] | None = None,
    guide: str | None = None,
    sampling: dict[str, Any] | None = None,
    seed: int = 0,
    timeout_s: float = 60,
) -> ExperimentSpec:
    members = list(members or [member()])
    floating = len(members) > 1
    route: dict[str, Any] = {
        "mode": "floating" if floating else "fixed",
        "members": tuple(members),
        "timeout_s": timeout_s,
        "max_wait_s": 60,
        "retry": {
            "max_attempts": 3,
            "backoff_s": 1,
            "backoff_base": 2,
            "backoff_max_s": 10,
            "statuses": (429, 500),
            "timeouts": True,
            "connection_errors": True,
        },
    }
    if floating:
        route |= {"granularity": "call", "seed": seed}
    return ExperimentSpec.model_validate(
        {
            "scheme": 1,
            "benchmark": {
                "kind": "agentdojo",
                "version": "v1.2.1",
                "split": "all",
                "tasks": tuple(tasks),
                "manifest": "sha256:" + "0" * 64,
            },
            "agent": {
                "kind": "tool_loop",
                "version": 1,
                "max_steps": 20,
                "tool_timeout_s": 30,
                "prompt": "sha256:" + "1" * 64,
            },
            "route": route,
            "sampling": sampling if sampling is not None else {"temperature": 0},
            "drift": {"served_model": "invalidate", "upstream": "invalidate", "fingerprint": "record"},
            "guide": {"kind": "rules", "digest": "sha256:" + guide * 64} if guide else {"kind": "none"},
            "k": k,
        }
    )


def make_trial(run: int, task: str, outcome: Outcome, at: float = 1_800_000_000.0, **changes: Any) -> Trial:
    settings: dict[str, Any] = {
        "take": 0,
        "cause": "retries_exhausted" if outcome == "invalid" else None,
        "ended": "answer",
        "verdict": None,
        "steps": 4,
        "calls": 4,
        "attempts": 5,
        "retry_count": 1,
        "prompt_tokens": 900,
        "completion_tokens": 100,
        "waited_s": 0.5,
        "started_at": at,
        "ended_at": at + 60,
    }
    return Trial(run=run, task=task, outcome=outcome, **(settings | changes))


def make_record(
    spec: ExperimentSpec,
    rows: Sequence[str],
    *,
    execution: str = "x-1",
    arm: str | None = None,
    at: float = 1_800_000_000.0,
    **changes: Any,
) -> ExecutionRecord:
    """`rows` has a text per run and a letter per task: + pass, - fail, ? invalid, . missing."""
    trials = [
        make_trial(run, task, OUTCOMES[letter], at=at)
        for run, row in enumerate(rows)
        for task, letter in zip(spec.benchmark.tasks, row, strict=True)
        if letter != "."
    ]
    return ExecutionRecord(
        execution_id=execution,
        spec=spec,
        spec_id=spec.id,
        condition_id=spec.condition_id,
        arm=arm,
        started_at=at,
        ended_at=None if any("." in row for row in rows) else at + 60,
        trials=trials,
        **changes,
    )


class Make:
    """The makers above, as tests get them."""

    member = staticmethod(member)
    openai_member = staticmethod(openai_member)
    spec = staticmethod(make_spec)
    trial = staticmethod(make_trial)
    record = staticmethod(make_record)


@pytest.fixture
def make() -> type[Make]:
    return Make
