"""The benchmark `choices` from end to end: rehearsed, and with a real model."""

from collections import Counter
from pathlib import Path
from typing import Any

import orjson

from xspec.records.rows import Step

CHOICES = ("benchmark=choices",)
LOCAL = (*CHOICES, "provider=local", "agent=json_choice", "sampling.max_tokens=64")


def test_rehearsal_plays_choices(commands: Any) -> None:
    quiet = (
        "provider.behaviour.hopeless_tasks=0.25",
        "provider.faults.latency_s=0",
        "provider.faults.other_model=0",
    )
    code, said = commands.run(*CHOICES, *quiet, "k=2")
    assert code == 0, said
    (folder,) = commands.executions()
    outcomes = Counter(trial.outcome for trial in folder.progress().trials.values())
    assert sum(outcomes.values()) == 48
    assert outcomes["pass"] >= 20
    assert outcomes["fail"] >= 8


def test_rehearsal_cannot_make_json_choices(commands: Any) -> None:
    code, said = commands.run(*CHOICES, "agent=json_choice", "k=1")
    assert code == 2
    assert "needs a model that follows response_format" in said
    assert said.count("\n") == 1


def test_a_real_model_makes_choices(commands: Any, local_model: Path) -> None:
    tasks = "benchmark.tasks=[plain.0,plain.3,worded.0]"
    code, said = commands.run(*LOCAL, tasks, "k=2")
    assert code == 0, said
    (folder,) = commands.executions()
    trials = folder.progress().trials
    assert len(trials) == 6
    assert all(trial.outcome in ("pass", "fail") for trial in trials.values()), said
    assert all(trial.ended == "answered" and trial.calls == 1 for trial in trials.values())
    attempts = list(folder.rows("attempt"))
    assert {(row["served_model"], row["error"]) for row in attempts} == {("SmolLM2-135M-Instruct", None)}
    replies: dict[str, set[str]] = {}
    for row in folder.rows("step"):
        step = Step(**row)
        text = next(message["content"] for message in step.added if message["role"] == "assistant")
        assert set(orjson.loads(text)) == {"action", "arguments"}
        replies.setdefault(step.task, set()).add(text)
    assert all(len(texts) == 1 for texts in replies.values()), "temperature 0, one at a time"
    lock = folder.lock(1)
    assert lock["bindings"]["local"].startswith("http://127.0.0.1:")
    assert "xllamacpp" in lock["must_match"]["packages"]
    member = commands.spec(folder)["route"]["members"][0]
    assert (member["n_parallel"], member["gguf_sha256"][:4]) == (1, "b179")
    code, said = commands.run("replay", folder.info.execution_id)
    assert code == 0, said


def test_two_at_once(commands: Any, local_model: Path) -> None:
    tasks = "benchmark.tasks=[plain.0,plain.3]"
    code, said = commands.run(*LOCAL, tasks, "k=1", "provider.n_parallel=2")
    assert code == 0, said
    (folder,) = commands.executions()
    assert max(row["concurrency"] for row in folder.rows("attempt_started")) == 2
