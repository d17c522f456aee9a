"""Runs of an execution in AppWorld's own folder layout, for its evaluator and for readers of such folders.

FOLDER/run-0/
    tasks/TASK/dbs/, version/, …        as the world left them
    tasks/TASK/logs/environment_io.md   blocks of code and their output; api_calls.jsonl beside it
    tasks/TASK/logs/lm_calls.jsonl      a line a model call: what was sent, what came back
    tasks/TASK/logs/logger.jsonl        a line a message, the task first
    evaluations/SPLIT.json              the verdicts, as AppWorld's evaluator writes them

Put below `experiments/outputs` of an AppWorld root, `appworld evaluate FOLDER/run-0 SPLIT --root ROOT` judges it again.
"""

import json
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xspec.errors import StoreError, UserError
from xspec.guides.rules import system_text
from xspec.records.executions import ExecutionFolder
from xspec.records.rows import Step, Trial
from xspec.spec.models import ExperimentSpec
from xspec.spec.played import played_agent
from xspec.spec.store import Store

KIND = "appworld"


@dataclass(frozen=True, slots=True)
class ExportedRuns:
    """How many runs and trials were written. `left_out` counts trials that are invalid, missing, or kept nothing."""

    runs: int
    trials: int
    left_out: int


def export_appworld_run(store: Store, folder: ExecutionFolder, target: Path) -> ExportedRuns:
    """Writes the valid trials of an execution to the new folder `target`, whole or not at all.

    Raises UserError for an execution of another benchmark, one without a valid trial, and a target that is there.
    """
    spec = store.spec(folder.info.spec_id)
    if spec.benchmark.kind != KIND:
        raise UserError(
            f"{folder.path.name} is an execution of {spec.benchmark.kind}; appworld-run exports those of {KIND}"
        )
    played_agent(spec)
    if target.exists():
        raise UserError(f"{target} is there already; name a folder that is not")
    kept = {
        key: trial
        for key, trial in folder.progress().trials.items()
        if trial.outcome != "invalid" and _kept_by_world(folder, trial).is_dir()
    }
    if not kept:
        raise UserError(f"{folder.path.name} has no valid trial whose world was kept, so nothing to export")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-") as making:
            _write(store, folder, spec, kept, Path(making) / target.name)
            (Path(making) / target.name).rename(target)
    except OSError as error:
        raise StoreError(f"{target} cannot be written: {error.strerror or error}") from None
    total = spec.k * len(spec.benchmark.tasks)
    return ExportedRuns(len({run for run, _ in kept}), len(kept), total - len(kept))


def _kept_by_world(folder: ExecutionFolder, trial: Trial) -> Path:
    """What AppWorld itself kept of the trial's world."""
    return folder.world_folder(trial.run, trial.task, trial.take) / "tasks" / trial.task


def _write(
    store: Store,
    folder: ExecutionFolder,
    spec: ExperimentSpec,
    trials: Mapping[tuple[int, str], Trial],
    target: Path,
) -> None:
    talk = _Talk(store, spec)
    steps: dict[tuple[int, str, int], list[Step]] = defaultdict(list)
    for row in folder.rows("step"):
        step = Step(**row)
        steps[step.run, step.task, step.take].append(step)
    for run in sorted({run for run, _ in trials}):
        mine = [trials[run, task] for task in spec.benchmark.tasks if (run, task) in trials]
        for trial in mine:
            task = target / f"run-{run}" / "tasks" / trial.task
            # A checkpoint is a world that was left behind on the way; nobody reads them.
            shutil.copytree(_kept_by_world(folder, trial), task, ignore=shutil.ignore_patterns("checkpoints"))
            logs = task / "logs"
            logs.mkdir(exist_ok=True)
            of_trial = steps[trial.run, trial.task, trial.take]
            _write_lines(logs / "lm_calls.jsonl", talk.calls(trial.task, of_trial))
            _write_lines(logs / "logger.jsonl", talk.messages(trial.task, of_trial))
        evaluations = target / f"run-{run}" / "evaluations"
        evaluations.mkdir()
        text = json.dumps(_evaluation(mine), indent=4, ensure_ascii=False)
        (evaluations / f"{spec.benchmark.split}.json").write_text(text, encoding="utf-8")


class _Talk:
    """The conversations of an execution, put together again from the messages that its steps added."""

    def __init__(self, store: Store, spec: ExperimentSpec) -> None:
        manifest = store.json_blob(spec.benchmark.manifest)
        self._instructions = {row["id"]: row["instruction"] for row in manifest["tasks"]}
        self._prompt = store.blob(played_agent(spec).prompt).decode()
        self._guide = store.json_blob(spec.guide.digest) if spec.guide.kind == "rules" else None
        self._models = {member.name: member.model for member in spec.route.members}
        self._sampling = spec.sampling.model_dump(exclude_none=True)

    def calls(self, task: str, steps: Sequence[Step]) -> Iterator[dict[str, Any]]:
        """One call a step: the conversation so far, and the reply to it."""
        messages: list[dict[str, Any]] = [
            {"role": "system", "content": system_text(self._prompt, self._guide, task)}
        ]
        for step in steps:
            place = next(i for i, message in enumerate(step.added) if message["role"] == "assistant")
            messages += step.added[:place]
            reply = step.added[place]
            yield {
                "id": f"{step.run}/{task}/{step.step}",
                "input": {
                    "model": self._models[step.member],
                    **self._sampling,
                    "messages": list(messages),
                },
                "output": {
                    "choices": [{"index": 0, "message": reply, "finish_reason": step.finish_reason}],
                },
            }
            messages += step.added[place:]

    def messages(self, task: str, steps: Sequence[Step]) -> Iterator[dict[str, Any]]:
        """The task, then what agent and environment said to each other."""
        yield {"role": "task", "content": self._instructions[task]}
        for step in steps:
            for message in step.added if step.step else step.added[1:]:
                role = "agent" if message["role"] == "assistant" else "environment"
                yield {"role": role, "content": message.get("content") or ""}


def _evaluation(trials: Sequence[Trial]) -> dict[str, Any]:
    """Verdicts by task, and the aggregates over the tasks that are there, as AppWorld computes them."""
    individual = {trial.task: _verdict(trial) for trial in trials}
    by_scenario: dict[str, list[bool]] = defaultdict(list)
    for task, verdict in individual.items():
        by_scenario[task.partition("_")[0]].append(verdict["success"])
    tasks = [success for verdicts in by_scenario.values() for success in verdicts]
    scenarios = [all(verdicts) for verdicts in by_scenario.values()]
    return {
        "aggregate": {
            "task_goal_completion": round(100 * sum(tasks) / len(tasks), 1),
            "scenario_goal_completion": round(100 * sum(scenarios) / len(scenarios), 1),
        },
        "individual": individual,
    }


def _verdict(trial: Trial) -> dict[str, Any]:
    """The engine's own verdict; a trial that failed without one (a step limit, say) has no success."""
    detail = (trial.verdict or {}).get("detail", {})
    return {
        "success": trial.outcome == "pass",
        "difficulty": detail.get("difficulty"),
        "num_tests": detail.get("num_tests"),
        "passes": detail.get("passes", []),
        "failures": [{"trace": "", **failure} for failure in detail.get("failures", [])],
    }


def _write_lines(path: Path, rows: Iterator[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
