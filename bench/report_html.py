"""The HTML report of 4 arms x 168 tasks x 5 runs, from records to the page: CPU seconds and megabytes.

    python -m bench.report_html [--repeats 3] [--keep FILE]

Trials have 6 to 14 steps, tool results of 400 characters; runs part in nearly every task. Analysis is included, imports
and the making of the data are not. Prints JSON.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np

from xspec.analysis.resampling import resample_counts, sign_patterns
from xspec.records.rows import Outcome, Trial
from xspec.report.build import build_report
from xspec.report.execution_record import ExecutionRecord
from xspec.report.html import report_html
from xspec.report.json_form import report_json
from xspec.report.steps import steps_of
from xspec.spec.models import ExperimentSpec

TASKS, RUNS = 168, 5
ARMS = ("baseline", "guided", "floating", "guided_floating")
_AT = 1_800_000_000.0


def made() -> list[ExecutionRecord]:
    """Four arms of one seed. 2% of the trials are invalid, 5% of the steps retried."""
    random = np.random.default_rng(1)
    rates = np.repeat(random.beta(1.5, 0.6, TASKS // 3), 3)
    names = [f"appworld.scenario_{i // 3:03}_{i % 3 + 1}" for i in range(TASKS)]
    info = {
        name: {
            "cluster": name[:-2],
            "stratum": f"app {i % 4}",
            "difficulty": ("easy", "medium", "hard")[i % 3],
            "instruction": f"Task {i}: " + "do what the words of this instruction say. " * 5,
        }
        for i, name in enumerate(names)
    }
    return [
        _record(arm, _spec(names, guided=place % 2 == 1, floating=place > 1), rates, place, info, random)
        for place, arm in enumerate(ARMS)
    ]


def _record(
    arm: str, spec: ExperimentSpec, rates: Any, place: int, info: dict[str, Any], random: np.random.Generator
) -> ExecutionRecord:
    trials, steps, attempts = [], [], []
    for run in range(RUNS):
        for number, task in enumerate(spec.benchmark.tasks):
            passed = random.random() < 1 - (1 - rates[number]) * (1 - 0.1 * place)
            outcome: Outcome = "invalid" if random.random() < 0.02 else "pass" if passed else "fail"
            length = 6 + number % 9
            retries = 0
            for step in range(length):
                at = {"run": run, "task": task, "take": 0, "step": step}
                retried = random.random() < 0.05
                retries += retried
                if retried:
                    attempts.append(_attempt(at, 0, "server_error"))
                attempts.append(_attempt(at, int(retried), None))
                steps.append(
                    at | _messages(step, length, int(random.integers(4)) if random.random() < 0.1 else number)
                )
            trials.append(_trial(run, task, outcome, length, retries))
    return ExecutionRecord(
        execution_id=f"ex-{arm}",
        spec=spec,
        spec_id=spec.id,
        condition_id=spec.condition_id,
        arm=arm,
        started_at=_AT,
        ended_at=_AT + 3600,
        trials=trials,
        task_info=info,
        steps=steps_of(steps, attempts, trials),
        locks=[{"workers": 16, "must_match": {"python": "3.11"}}],
    )


def _messages(step: int, length: int, choice: int) -> dict[str, Any]:
    if step == length - 1:
        return {"actions": [], "added": [{"role": "assistant", "content": f"The answer is {choice}."}]}
    action = {"name": f"tool_{step % 5}", "arguments": {"query": f"choice {choice}", "limit": 20}}
    function = {"name": action["name"], "arguments": json.dumps(action["arguments"])}
    return {
        "actions": [{"action": action, "error": False}],
        "added": [
            {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": function}]},
            {"role": "tool", "tool_call_id": "1", "content": "result " * 57},
        ],
    }


def _attempt(at: dict[str, Any], number: int, error: str | None) -> dict[str, Any]:
    return at | {"call": 0, "attempt": number, "member": "a", "error": error, "drift": []}


def _trial(run: int, task: str, outcome: Outcome, steps: int, retries: int) -> Trial:
    return Trial(
        run=run,
        task=task,
        take=0,
        outcome=outcome,
        cause={"pass": None, "fail": "verdict", "invalid": "route:server_error"}[outcome],
        ended="answered",
        verdict=None,
        steps=steps,
        calls=steps,
        attempts=steps + retries,
        retry_count=retries,
        prompt_tokens=900 * steps,
        completion_tokens=100 * steps,
        waited_s=0.0,
        started_at=_AT,
        ended_at=_AT + 60,
    )


def _spec(tasks: list[str], *, guided: bool, floating: bool) -> ExperimentSpec:
    members = [
        {
            "kind": "openai",
            "name": name,
            "base_url": "https://api.example.com/v1",
            "path": "/chat/completions",
            "model": f"model-{name}",
            "api_key_env": "OPENAI_API_KEY",
        }
        for name in ("ab" if floating else "a")
    ]
    route: dict[str, Any] = {
        "mode": "floating" if floating else "fixed",
        "members": tuple(members),
        "timeout_s": 60.0,
        "max_wait_s": 60.0,
        "retry": {
            "max_attempts": 3,
            "backoff_s": 1.0,
            "backoff_base": 2.0,
            "backoff_max_s": 10.0,
            "statuses": (429, 500),
            "timeouts": True,
            "connection_errors": True,
        },
    }
    if floating:
        route |= {"granularity": "call", "seed": 0}
    return ExperimentSpec.model_validate(
        {
            "scheme": 1,
            "benchmark": {
                "kind": "appworld",
                "version": "1",
                "split": "test_normal",
                "tasks": tuple(tasks),
                "manifest": "sha256:" + "0" * 64,
            },
            "agent": {
                "kind": "tool_loop",
                "version": 1,
                "max_steps": 20,
                "tool_timeout_s": 30.0,
                "prompt": "sha256:" + "1" * 64,
            },
            "route": route,
            "sampling": {"temperature": 0.0},
            "drift": {"served_model": "invalidate", "upstream": "invalidate", "fingerprint": "record"},
            "guide": {"kind": "rules", "digest": "sha256:" + "a" * 64} if guided else {"kind": "none"},
            "k": RUNS,
        }
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--keep", metavar="FILE", help="write the page there, to look at")
    options = parser.parse_args()
    records = made()
    analysis, pages = [], []
    for _ in range(options.repeats):
        # Each repetition draws anew, as a report in a fresh process does.
        resample_counts.cache_clear()
        sign_patterns.cache_clear()
        began = time.process_time()
        report = build_report(records)
        built = time.process_time()
        page = report_html(report)
        analysis.append(built - began)
        pages.append(time.process_time() - built)
    if options.keep:
        Path(options.keep).write_text(page, encoding="utf-8")
    print(
        json.dumps(
            {
                "arms": len(ARMS),
                "tasks": TASKS,
                "runs": RUNS,
                "groups": len(report.groups),
                "analysis_cpu_s": statistics.median(analysis),
                "html_cpu_s": statistics.median(pages),
                "cpu_s": statistics.median(a + b for a, b in zip(analysis, pages, strict=True)),
                "html_mb": len(page.encode()) / 1e6,
                "json_mb": len(report_json(report).encode()) / 1e6,
            },
            indent=2,
        )
    )


if __name__ == "__main__":
    main()
