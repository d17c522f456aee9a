"""Own tasks of every scenario on the real engine, rehearsed: what is judged is what the simulated model intended."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from xspec.benchmarks.pool import WorkerPool
from xspec.records.executions import ExecutionFolder, executions_of
from xspec.spec.store import Store

pytestmark = pytest.mark.timeout(900)
"""The engine takes half a second of CPU a trial, and other tests may run beside it."""

K = 2
TASKS = ("alarmoff_1", "chores_1", "chores_2", "rota_1", "rota_3", "tagcount_1")
OVERRIDES = [
    *("benchmark=appworld", "benchmark.split=test_normal", f"benchmark.tasks=[{','.join(TASKS)}]"),
    *("agent=code_react", f"k={K}", "workers=4"),
    *(
        "provider.behaviour.unstable_tasks=0.6",
        "provider.behaviour.flip_alpha=1",
        "provider.behaviour.flip_beta=1",
    ),
    *(
        "provider.behaviour.detour=0.2",
        "provider.faults.garbled_arguments=0.05",
        "provider.faults.other_model=0",
    ),
    *("provider.faults.stall=0", "provider.faults.latency_s=0", "route.timeout_s=60"),
]


@dataclass(frozen=True)
class Executed:
    """A finished sweep: its store, how the command ended, and the processes of its session that outlived it."""

    store: Store
    code: int
    err: str
    left: list[str]

    def arms(self) -> list[ExecutionFolder]:
        return executions_of(self.store)


@pytest.fixture(scope="module")
def variables(appworld_root: Path) -> Mapping[str, str]:
    return {**os.environ, "APPWORLD_ROOT": str(appworld_root), "XSPEC_MLFLOW": "later"}


@pytest.fixture(scope="module")
def executed(variables: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory) -> Executed:
    cwd = tmp_path_factory.mktemp("end-to-end")
    process = subprocess.Popen(
        [sys.executable, "-m", "xspec", *OVERRIDES, "+arm=baseline,guided", "-m"],
        cwd=cwd,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    _, err = process.communicate(timeout=800)
    left = [one.name() for one in psutil.process_iter() if _session(one.pid) == process.pid]
    return Executed(Store(cwd / "mlruns"), process.returncode, err, left)


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None


def xspec(executed: Executed, variables: Mapping[str, str], *arguments: str) -> str:
    words = [sys.executable, "-m", "xspec", *arguments, "--store", str(executed.store.path)]
    done = subprocess.run(words, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_judged_outcomes_are_those_intended(
    executed: Executed, variables: Mapping[str, str], intent: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert executed.code in (0, 1), executed.err
    assert executed.left == [], "the command left processes behind"
    monkeypatch.setenv("APPWORLD_ROOT", variables["APPWORLD_ROOT"])
    report = json.loads(xspec(executed, variables, "report", "--format", "json"))
    arms = {arm["arm"]: arm for arm in report["arms"]}
    assert sorted(arms) == ["baseline", "guided"]
    seen: set[str] = set()
    for folder in executed.arms():
        spec = executed.store.spec(folder.info.spec_id)
        meant = intent(executed.store, spec, solutions(spec))
        trials = folder.progress().trials
        assert sorted(trials) == sorted((run, task) for run in range(K) for task in TASKS)
        intended = {place: meant.outcome(folder.path.name, *place) for place in trials}
        assert {place: trial.outcome for place, trial in trials.items()} == intended
        seen |= set(intended.values())
        passed = [[intended[run, task] for run in range(K)] for task in spec.benchmark.tasks]
        complete = [[outcome == "pass" for outcome in runs] for runs in passed if "invalid" not in runs]
        gap = 100 * sum(sum(runs) / K - all(runs) for runs in complete) / len(complete)
        assert arms[folder.info.arm]["gap_pp"] == pytest.approx(gap)
    assert seen >= {"pass", "fail"}


def solutions(spec: Any) -> dict[str, Any]:
    async def ask() -> dict[str, Any]:
        benchmark = spec.benchmark
        async with WorkerPool(
            benchmark.kind, benchmark.version, benchmark.split, benchmark.settings, members=1, log=None
        ) as pool:
            return await pool.solutions()

    return asyncio.run(ask())


def test_chains_are_api_calls(executed: Executed) -> None:
    named = [
        call["name"]
        for folder in executed.arms()
        for row in folder.rows("step")
        for entry in row["actions"]
        for call in entry.get("calls", ())
    ]
    assert named.count("supervisor.complete_task") >= K * len(TASKS)
    assert len(set(named)) > 5


def test_stored_replies_give_the_same_world_and_verdict(
    executed: Executed, variables: Mapping[str, str]
) -> None:
    (folder, *_) = executed.arms()
    trials = folder.progress().trials.values()
    longest = max((trial for trial in trials if trial.outcome != "invalid"), key=lambda trial: trial.steps)
    said = xspec(executed, variables, "replay", f"{folder.path.name}/{longest.run}/{longest.task}")
    assert "1 of 1 trial replayed identically" in said


def test_replay_refuses_other_data(
    executed: Executed, variables: Mapping[str, str], appworld_root: Path, tmp_path: Path
) -> None:
    root = tmp_path / "root"
    shutil.copytree(appworld_root, root)
    (folder, *_) = executed.arms()
    task = executed.store.spec(folder.info.spec_id).benchmark.tasks[0]
    specs = root / "data/tasks" / task / "specs.json"
    told = json.loads(specs.read_bytes())
    specs.write_text(json.dumps({**told, "instruction": told["instruction"] + " Please."}))
    words = ["replay", folder.path.name, "--store", str(executed.store.path)]
    done = subprocess.run(
        [sys.executable, "-m", "xspec", *words],
        env={**variables, "APPWORLD_ROOT": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stdout + done.stderr
    assert f"differs in 1 task ({task})" in done.stderr


def test_the_published_experiment_wants_a_yes(variables: Mapping[str, str], tmp_path: Path) -> None:
    """The preset, whole, on the twelve tasks that stand for its 168 here: told what it takes, nothing sent."""
    words = [
        sys.executable,
        "-m",
        "xspec",
        "+published=appworld_gpt41",
        "provider=openai",
        "+arm=baseline",
        "-m",
    ]
    keyed = {**variables, "OPENAI_API_KEY": "not-a-key-of-anybody"}
    done = subprocess.run(
        words, cwd=tmp_path, env=keyed, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "nothing was sent: 60 trials, about 960 calls, 6.4 million prompt and 144,000 completion" in line
    assert "--yes" in line
    assert list(tmp_path.iterdir()) == [], "a refused run leaves nothing"
