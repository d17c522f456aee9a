"""A gateway's execution in MLflow: one run, with figures of its calls and an end of its own."""

import json
from typing import Any

import pytest

from xspec.records.executions import ExecutionFolder
from xspec.records.journal import Journal
from xspec.records.rows import AttemptEnded, AttemptStarted, Call, Closed
from xspec.tracking.project import project_all

BEGAN = 1_800_000_000.0
PLACE: dict[str, Any] = {"run": 0, "task": "banking.user_task_0", "take": 0, "step": 0}
SENT: dict[str, Any] = {"spec_id": "xs-0", "request_digest": "sha256:0", "concurrency": 1}
GATEWAY_ENDS = {
    "done": "FINISHED",
    "failed": "FAILED",
    "stopped": "FAILED",
    "interrupted": "KILLED",
    None: "KILLED",
}


def gateway(maker: Any, end: Any) -> ExecutionFolder:
    """An execution of two calls, the second the harness's own retry; `end` as in its last row, None if killed."""
    spec = maker.spec(agent={"kind": "gateway", "version": 1, "enforce": "fill"})
    folder = ExecutionFolder.create(maker.store, spec.id, None, ["gateway"])
    folder.lock_path(1).write_text(json.dumps({"stint": 1, "must_match": {}, "served": {}}))
    with Journal(folder.journal_path(1)) as journal:
        for call, attempts in enumerate((2, 1)):
            for attempt in range(attempts):
                of = {**PLACE, "call": call, "attempt": attempt, "member": "main"}
                journal.append(AttemptStarted(**of, at=BEGAN, **SENT))
                failed = attempt < attempts - 1
                tokens = {} if failed else {"prompt_tokens": 100, "completion_tokens": 10}
                how = {"status": 500, "error": "server_error"} if failed else {"status": 200, "error": None}
                journal.append(AttemptEnded(**of, at=BEGAN + 1, **how, waited_s=0, latency_s=0.25, **tokens))
            journal.append(_call(call, "retry" if call else None))
        if end is not None:
            journal.append(Closed(at=BEGAN + 60, ended=end, code=None))
    return folder


def _call(call: int, again: Any) -> Call:
    return Call(
        **PLACE,
        call=call,
        at=BEGAN,
        by="path",
        endpoint="chat_completions",
        streamed=False,
        asked_digest="sha256:0",
        bytes=100,
        tools=None,
        changes=[{"field": "temperature", "asked": 1, "sent": 0}, {"field": "seed", "sent": 42}],
        observed=["messages"],
        again=again,
        ended="answered",
        status=200,
        why=None,
        latency_s=0.5,
    )


@pytest.mark.parametrize(("end", "status"), GATEWAY_ENDS.items(), ids=str)
def test_a_gateway_is_one_run_with_its_calls(maker: Any, database: Any, end: str | None, status: str) -> None:
    folder = gateway(maker, end)
    assert project_all(maker.store) == 1
    name = f"gateway route=fixed {folder.info.spec_id[:9]}"
    assert database.statuses() == {name: status}, "it has no trials, so no nested runs"
    figures = database.metrics_of(name)
    assert (figures["calls"], figures["attempts"], figures["retry_count"], figures["harness_retries"]) == (
        2,
        3,
        1,
        1,
    )
    assert (figures["total_tokens"], figures["unreturned_attempts"]) == (220, 0)
    assert not {"abandoned_attempts", "trials_missing"} & figures.keys()
    note = database.tags_of(name)["mlflow.note.content"]
    assert "2 calls, 2 of them answered" in note
    assert "reproduce" not in note
    assert ("not closed in order" in note) == (end is None)
    assert project_all(maker.store) == 0
