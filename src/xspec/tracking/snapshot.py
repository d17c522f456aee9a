"""What an execution leaves for a person to open: the files that become its run's artifacts in MLflow."""

import json
import os
import shutil
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from xspec.benchmarks.protected import left_out, protection_of
from xspec.guides.rules import rules_for
from xspec.records.executions import ExecutionFolder
from xspec.records.parquet import current_trials, parquet_folder, read_rows
from xspec.spec.models import ExperimentSpec
from xspec.spec.store import Store

_WITH_TEXTS = ("steps-", "trials-")
"""Parquet tables with columns of text: messages and actions; verdicts and details."""


def write_artifacts(
    store: Store, folder: ExecutionFolder, target: Path, *, include_protected: bool = False
) -> None:
    """Fills the empty folder `target` from the projected tables and the store's blobs.

    Where a licence protects the benchmark's texts, what holds them is left out unless it is to be included.
    """
    spec_id = folder.info.spec_id
    spec = store.spec(spec_id)
    protected = protection_of(spec.benchmark.kind) is not None and not include_protected
    (target / "spec.json").write_bytes(store.spec_bytes(spec_id))
    _write(target / "lock.json", folder.locks())
    _write(target / "config_snapshot.json", config_snapshot(store, spec, protected=protected))
    trials = current_trials(folder)
    _write(target / "usage.json", usage(folder, trials))
    (target / "trajectories").mkdir()
    for run, trajectories in run_trajectories(spec, folder, trials).items():
        shown = [_without_texts(one) for one in trajectories] if protected else trajectories
        (target / "trajectories" / f"run-{run}.json").write_bytes(
            orjson.dumps(shown, option=orjson.OPT_INDENT_2)
        )
    (target / "parquet").mkdir()
    for path in parquet_folder(folder).glob("*.parquet"):
        if not (protected and path.name.startswith(_WITH_TEXTS)):
            _link(path, target / "parquet" / path.name)
    if protected:
        note = f"Texts of tasks and trials are {left_out(spec.benchmark.kind)} (`python -m xspec project`).\n"
        (target / "PROTECTED.txt").write_text(f"{note}The store itself has them all.\n", encoding="utf-8")


def config_snapshot(store: Store, spec: ExperimentSpec, *, protected: bool = False) -> dict[str, Any]:
    """The spec with the texts that its digests stand for: prompt and guide in words, the task list as it is.

    Rules made from trajectories derive from the tasks' texts: where those are `protected`, they are left out too.
    """
    plain = spec.plain()
    if spec.agent.kind != "gateway":
        prompt = spec.agent.prompt
        plain["agent"]["prompt"] = {"digest": prompt, "text": store.blob(prompt).decode()}
    if spec.guide.kind == "rules":
        guide = store.json_blob(spec.guide.digest)
        if protected and any(rule.get("source_tasks") for rule in guide["rules"]):
            plain["guide"]["rules"] = left_out(spec.benchmark.kind)
            return {"spec_id": spec.id, "condition_id": spec.condition_id, **plain}
        by_task = {task: rules_for(guide, task) for task in spec.benchmark.tasks}
        same = all(given == guide["rules"] for given in by_task.values())
        texts = {task: [rule["content"] for rule in given] for task, given in by_task.items()}
        rules = [rule["content"] if len(rule) == 1 else rule for rule in guide["rules"]]
        plain["guide"] = {**plain["guide"], "rules": rules, "rules_by_task": "all" if same else texts}
    return {"spec_id": spec.id, "condition_id": spec.condition_id, **plain}


def usage(folder: ExecutionFolder, trials: list[dict[str, Any]]) -> dict[str, Any]:
    """Calls, attempts, tokens and waits, in all and by member. Attempts of abandoned takes count: they cost."""
    columns = ["run", "task", "take", "member", "error", "status", "waited_s", "latency_s", "ended_at"]
    columns += ["step", "call", "prompt_tokens", "completion_tokens"]
    members: dict[str, Counter[str]] = defaultdict(Counter)
    errors: dict[str, Counter[str]] = defaultdict(Counter)
    calls: set[tuple[Any, ...]] = set()
    for row in read_rows(folder, "attempts", columns).to_pylist():
        member = members[row["member"]]
        member["attempts"] += 1
        for name in ("prompt_tokens", "completion_tokens", "waited_s", "latency_s"):
            member[name] += row[name] or 0
        if row["error"] is not None:
            errors[row["member"]][row["error"]] += 1
        elif row["ended_at"] is not None:
            member["replies"] += 1
            member["replies_uncounted"] += row["prompt_tokens"] is None and row["completion_tokens"] is None
        calls.add((row["run"], row["task"], row["take"], row["step"], row["call"]))
    total: Counter[str] = Counter()
    for member in members.values():
        total.update(member)
    return {
        "trials": len(trials),
        "calls": len(calls),
        "retry_count": total["attempts"] - len(calls)
        if not trials
        else sum(trial["retry_count"] for trial in trials),
        **_used(total),
        "members": {
            name: {**_used(member), "errors": dict(errors[name].most_common())}
            for name, member in sorted(members.items())
        },
    }


def _used(counts: Mapping[str, float]) -> dict[str, float | None]:
    """Rounded; tokens are None where no reply said how many it took."""
    names = ("attempts", "prompt_tokens", "completion_tokens", "replies_uncounted", "waited_s", "latency_s")
    used: dict[str, float | None] = {name: round(counts[name], 3) for name in names}
    if 0 < counts["replies_uncounted"] == counts["replies"]:
        used |= {"prompt_tokens": None, "completion_tokens": None}
    return used


def run_trajectories(
    spec: ExperimentSpec, folder: ExecutionFolder, trials: list[dict[str, Any]]
) -> dict[int, list[dict[str, Any]]]:
    """The current trials of each run in the spec's order, each with the messages and actions of its steps."""
    steps: dict[tuple[int, str, int], list[dict[str, Any]]] = defaultdict(list)
    columns = ["run", "task", "take", "step", "finish_reason", "actions", "added"]
    for row in read_rows(folder, "steps", columns).to_pylist():
        failed = [entry["error"] for entry in orjson.loads(row["actions"])]
        steps[(row["run"], row["task"], row["take"])].append(
            {
                "step": row["step"],
                "finish_reason": row["finish_reason"],
                "action_failed": failed,
                "messages": orjson.loads(row["added"]),
            }
        )
    place = {task: i for i, task in enumerate(spec.benchmark.tasks)}
    runs: dict[int, list[dict[str, Any]]] = {run: [] for run in sorted({t["run"] for t in trials})}
    for trial in sorted(trials, key=lambda t: (t["run"], place.get(t["task"], len(place)), t["task"])):
        runs[trial["run"]].append(
            {
                **{name: trial[name] for name in ("task", "outcome", "cause", "ended", "detail")},
                "verdict": None if trial["verdict"] is None else orjson.loads(trial["verdict"]),
                "retry_count": trial["retry_count"],
                "tokens": _tokens_of(trial),
                "steps": steps[(trial["run"], trial["task"], trial["take"])],
            }
        )
    return runs


def _tokens_of(trial: Mapping[str, Any]) -> int | None:
    """None if no reply said."""
    known = [trial[name] for name in ("prompt_tokens", "completion_tokens") if trial[name] is not None]
    return sum(known) if known else None


def _without_texts(trial: dict[str, Any]) -> dict[str, Any]:
    """A trial of `run_trajectories` without what the benchmark, the agent or the verdict said."""
    verdict = None if trial["verdict"] is None else {"passed": trial["verdict"].get("passed")}
    steps = [{name: value for name, value in step.items() if name != "messages"} for step in trial["steps"]]
    return {**trial, "detail": None, "verdict": verdict, "steps": steps}


def _write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False), encoding="utf-8")


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
