"""`export appworld-run`: AppWorld's own evaluator reads what was exported and comes to the same verdicts."""

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from xspec.__main__ import main
from xspec.records.executions import ExecutionFolder
from xspec.records.journal import Journal
from xspec.records.rows import Step, Trial
from xspec.spec.canonical import canonical_bytes
from xspec.spec.models import ExperimentSpec
from xspec.spec.store import Store

MAKER = Path(__file__).parent / "make_run.py"
TASKS = ("chores_1", "chores_2", "chores_3")
SPLIT = "dev"
EVALUATE = f"""
import sys
from appworld.evaluator import evaluate_dataset
for name in sys.argv[1:]:
    evaluate_dataset(experiment_name=name, dataset_name="{SPLIT}")
"""
RUNS = [[True, True, True], [True, False, True]]
"""By run and task, whether the known solution is played; else it is given up before it is done."""


@dataclass(frozen=True)
class Made:
    """A store with an execution of two runs, and the root whose worlds were played."""

    store: Store
    execution: ExecutionFolder
    root: Path


@pytest.fixture(scope="module")
def made(
    appworld_root: Path,
    appworld_run: Callable[..., str],
    make_plain: Callable[[], dict[str, Any]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Made:
    """An execution as xspec's worker and journal leave it, its worlds played by the real engine."""
    base = tmp_path_factory.mktemp("export")
    root = base / "root"
    root.mkdir()
    (root / "data").symlink_to(appworld_root / "data")
    plan = []
    for run, solved in enumerate(RUNS):
        for task, solve in zip(TASKS, solved, strict=True):
            truth = root / "data" / "tasks" / task / "ground_truth"
            known = json.loads((truth / "xspec_solution.json").read_text())
            calls = known["calls"] if solve else [*known["calls"][: known["commit"]], known["give_up"]]
            blocks = [call["code"] for call in calls]
            plan.append({"task": task, "experiment": f"made-{run}", "blocks": blocks})
    results = json.loads(appworld_run(MAKER, stdin=json.dumps(plan), APPWORLD_ROOT=str(root)))
    store = Store(base / "store")
    spec = _spec(store, root, make_plain())
    execution = ExecutionFolder.create(store, spec.id, "baseline", ["benchmark=appworld"])
    execution.lock_path(1).write_text(json.dumps({"stint": 1, "must_match": {}, "served": {}}))
    with Journal(execution.journal_path(1)) as journal:
        for one, result in zip(plan, results, strict=True):
            run, task = int(one["experiment"][-1]), one["task"]
            world = execution.begin_world_folder(run, task, 0) / "tasks"
            world.mkdir()
            outputs = root / "experiments" / "outputs" / one["experiment"] / "tasks"
            shutil.move(outputs / task, world / task)
            _record(journal, run, task, one["blocks"], result)
    return Made(store, execution, root)


def export(made: Made, target: Path, *words: str) -> int:
    command = ["export", "appworld-run", made.execution.path.name, "-o", str(target)]
    return main([*command, "--store", str(made.store.path), *words])


def test_appworlds_own_evaluator_comes_to_the_same_verdicts(
    made: Made, appworld_run: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    target = made.root / "experiments" / "outputs" / "exported"
    assert export(made, target, "--include-protected") == 0
    assert "6 trials in 2 runs" in capsys.readouterr().out
    ours, theirs = {}, {}
    for run in range(len(RUNS)):
        path = target / f"run-{run}" / "evaluations" / f"{SPLIT}.json"
        ours[run] = json.loads(path.read_text())
        path.unlink()
    appworld_run("-c", EVALUATE, "exported/run-0", "exported/run-1", APPWORLD_ROOT=str(made.root))
    for run, solved in enumerate(RUNS):
        theirs[run] = json.loads((target / f"run-{run}" / "evaluations" / f"{SPLIT}.json").read_text())
        assert theirs[run]["aggregate"] == ours[run]["aggregate"]
        for task, passes in zip(TASKS, solved, strict=True):
            one, other = ours[run]["individual"][task], theirs[run]["individual"][task]
            assert one["success"] is passes
            for field in ("success", "difficulty", "num_tests", "passes"):
                assert other[field] == one[field]
            failed = [[f["requirement"] for f in verdict["failures"]] for verdict in (one, other)]
            assert failed[0] == failed[1]


def test_logs_are_there_for_readers_of_such_folders(made: Made, tmp_path: Path) -> None:
    assert export(made, tmp_path / "out", "--include-protected") == 0
    logs = tmp_path / "out" / "run-1" / "tasks" / "chores_2" / "logs"
    blocks = re.findall(
        r"```python\n(.*?)\n```\n\n```\n(.*?)\n```", (logs / "environment_io.md").read_text(), re.S
    )
    calls = [json.loads(line) for line in (logs / "lm_calls.jsonl").read_text().splitlines()]
    assert len(calls) == len(blocks) == 4
    assert [message["role"] for message in calls[0]["input"]["messages"]] == ["system", "user"]
    assert "Own garden" in calls[0]["input"]["messages"][1]["content"]
    for number, (call, (code, _)) in enumerate(zip(calls, blocks, strict=True)):
        assert len(call["input"]["messages"]) == 2 + 2 * number
        assert code in call["output"]["choices"][0]["message"]["content"]
        assert call["input"]["model"] == "small-2026-01-01"
    spoken = [json.loads(line) for line in (logs / "logger.jsonl").read_text().splitlines()]
    assert [line["role"] for line in spoken[:4]] == ["task", "agent", "environment", "agent"]
    assert "Own garden" in spoken[0]["content"]


def test_protected_text_is_written_only_when_asked_for(
    made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert export(made, tmp_path / "out") == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "licence" in said
    assert "--include-protected" in said
    spec = ["export", "spec", made.execution.info.spec_id, "-o", str(tmp_path / "spec.json")]
    assert main([*spec, "--store", str(made.store.path)]) == 2
    assert list(tmp_path.iterdir()) == []
    assert main([*spec, "--store", str(made.store.path), "--include-protected"]) == 0


def test_what_cannot_be_exported_is_one_line(
    made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    there = tmp_path / "there"
    there.mkdir()
    assert export(made, there, "--include-protected") == 2
    assert "is there already" in capsys.readouterr().err
    assert main(["export", "appworld-run", "ex-no", "-o", "x", "--store", str(made.store.path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert list(tmp_path.iterdir()) == [there]


def _spec(store: Store, root: Path, plain: dict[str, Any]) -> ExperimentSpec:
    rows = []
    for task in TASKS:
        specs = json.loads((root / "data" / "tasks" / task / "specs.json").read_text())
        rows.append({"id": task, "cluster": task.split("_")[0], "instruction": specs["instruction"]})
    plain["benchmark"] = {
        "kind": "appworld",
        "version": "0.1.0",
        "split": SPLIT,
        "tasks": TASKS,
        "manifest": store.put_blob(canonical_bytes({"tasks": rows})),
    }
    plain["agent"] = {
        "kind": "code_react",
        "version": 1,
        "max_steps": 50,
        "tool_timeout_s": 120,
        "max_output_chars": 20_000,
        "prompt": store.put_blob(b"Act by code."),
    }
    plain["k"] = len(RUNS)
    spec = ExperimentSpec.model_validate_json(json.dumps(plain))
    store.put_spec(spec)
    return spec


def _record(journal: Journal, run: int, task: str, blocks: list[str], result: dict[str, Any]) -> None:
    verdict = result["verdict"]
    added: list[dict[str, Any]] = [{"role": "user", "content": f"Do {task} in Own garden."}]
    for number, (code, output) in enumerate(zip(blocks, result["outputs"], strict=True)):
        added.append({"role": "assistant", "content": f"Step {number}.\n```python\n{code}\n```"})
        added.append({"role": "user", "content": f"Output:\n{output}"})
        journal.append(
            Step(
                run=run,
                task=task,
                take=0,
                step=number,
                at=0.0,
                member="main",
                request_digest="sha256:0",
                finish_reason="stop",
                refusal=None,
                actions=[{"action": {"code": code}, "error": False}],
                added=added,
            )
        )
        added = []
    counts = dict.fromkeys(("calls", "attempts", "prompt_tokens", "completion_tokens"), len(blocks))
    journal.append(
        Trial(
            run=run,
            task=task,
            take=0,
            outcome="pass" if verdict["success"] else "fail",
            cause=None if verdict["success"] else "verdict",
            ended="answered",
            verdict={"passed": verdict["success"], "detail": verdict},
            steps=len(blocks),
            retry_count=0,
            waited_s=0.0,
            started_at=0.0,
            ended_at=1.0,
            **counts,
        )
    )
