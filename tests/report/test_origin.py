"""What the report says about where replies came from, and the figures with drift-invalidated trials."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from xspec.records.executions import ExecutionFolder
from xspec.records.journal import Journal
from xspec.records.parquet import project_parquet
from xspec.records.rows import AttemptEnded, AttemptStarted
from xspec.report.build import build_report
from xspec.report.json_form import report_data
from xspec.report.sentences import sentences
from xspec.report.served import replies_in_journal, replies_in_parquet
from xspec.route.verification import Revealed, Verification, verify
from xspec.spec.store import Store

MODEL = "gpt-4.1-2025-04-14"


def said(record: Any, about: str) -> list[Any]:
    (group,) = build_report([record]).groups
    return [sentence for sentence in sentences(group) if about in sentence.text]


def drifted(make: Any) -> Any:
    """Two tasks, two runs: + + / + ?, the invalid one by drift alone, its verdict a pass."""
    spec = make.spec(tasks=("t.0", "t.1"), members=[make.openai_member()])
    record = make.record(spec, ["++", "+?"], arm="base")
    trials = [
        replace(trial, cause="drift", verdict={"passed": True}, drift=["served_model: a -> b"])
        if trial.outcome == "invalid"
        else trial
        for trial in record.trials
    ]
    return replace(record, trials=trials)


def test_figures_with_drift_invalidated_trials(make: Any) -> None:
    (sentence,) = said(drifted(make), "counted by their verdicts")
    assert sentence.text == (
        "base: with drift-invalidated trials counted by their verdicts: Mean@2 100.0, Pass^2 100.0, gap 0.0 pp."
    )
    execution = report_data(build_report([drifted(make)]))["arms"][0]["executions"][0]
    assert execution["tasks_complete"] == 1
    assert (execution["with_drift"]["tasks_complete"], execution["with_drift"]["gap_pp"]) == (2, 0.0)


@pytest.mark.parametrize(("verdict", "mean"), [({"passed": False}, "75.0"), (None, "75.0")])
def test_a_drifted_trial_without_a_pass_counts_as_failed(make: Any, verdict: Any, mean: str) -> None:
    record = drifted(make)
    trials = [replace(t, verdict=verdict) if t.cause == "drift" else t for t in record.trials]
    (sentence,) = said(replace(record, trials=trials), "counted by their verdicts")
    assert f"Mean@2 {mean}" in sentence.text


def test_without_drift_nothing_is_said(make: Any) -> None:
    spec = make.spec(members=[make.openai_member()])
    assert said(make.record(spec, ["++?", "+-+"]), "counted by their verdicts") == []


def test_one_sentence_an_arm_says_what_is_verified(make: Any) -> None:
    spec = make.spec(members=[make.openai_member()])
    replies = {Revealed("gpt", MODEL, None, None, aggregated=False): 1200}
    record = make.record(spec, ["+++", "+-+"], arm="base", verifications=verify(spec.route, replies))
    (sentence,) = said(record, "served model")
    assert sentence.text == (
        f"base: served model verified ({MODEL} in 1,200 replies); upstream unverifiable (never named); "
        "fingerprint unknown (no reply names one)."
    )
    assert not sentence.warning


def test_a_gateway_is_a_warning_and_a_simulated_arm_is_silent(make: Any) -> None:
    spec = make.spec(members=[make.openai_member()])
    replies = {Revealed("gpt", MODEL, None, None, aggregated=True): 12}
    record = make.record(spec, ["+++", "+-+"], verifications=verify(spec.route, replies))
    (sentence,) = said(record, "served model unverifiable")
    assert sentence.warning
    simulated = make.spec()
    fine = [Verification("a", "served_model", "verified", "it")]
    assert said(make.record(simulated, ["+++", "+-+"], verifications=fine), "served model") == []


def test_parquet_and_journal_count_the_same(make: Any, tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    spec = make.spec(members=[make.openai_member()])
    store.put_spec(spec)
    folder = ExecutionFolder.create(store, spec.id, None, [])
    where = {"run": 0, "task": "t.0", "take": 0, "step": 0, "call": 0, "member": "gpt"}
    kinds: list[dict[str, Any]] = [
        {"served_model": MODEL, "fingerprint": "fp", "prompt_tokens": 0},
        {"served_model": MODEL, "fingerprint": "fp", "completion_tokens": 3},
        {"served_model": MODEL, "request_ids": {"x-oneapi-request-id": "r"}},
        {"served_model": "x", "drift": ["served_model: a -> x", "upstream: b -> c"], "upstream": "c"},
        {"error": "timeout"},
    ]
    with Journal(folder.journal_path(1)) as journal:
        for n, changes in enumerate(kinds):
            journal.append(
                AttemptStarted(**where, attempt=n, at=1.0, spec_id=spec.id, request_digest="d", concurrency=1)
            )
            settings: dict[str, Any] = {"status": 200, "error": None, "waited_s": 0.0, "latency_s": 0.1}
            journal.append(AttemptEnded(**where, attempt=n, at=2.0, **{**settings, **changes}))
        journal.append(
            AttemptStarted(**where, attempt=9, at=1.0, spec_id=spec.id, request_digest="d", concurrency=1)
        )
    expected = Counter(
        {
            Revealed("gpt", MODEL, None, "fp", aggregated=False): 2,
            Revealed("gpt", MODEL, None, None, aggregated=True, counted=False): 1,
            Revealed("gpt", "x", "c", None, False, drift=("served_model", "upstream"), counted=False): 1,
        }
    )
    assert replies_in_journal(folder) == expected
    project_parquet(store, folder)
    assert replies_in_parquet(folder) == expected
