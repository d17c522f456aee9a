"""Sweeps in processes: the command lines of the README, every end told, nothing left behind."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from xspec.records.executions import executions_of
from xspec.spec.store import Store

SMALL = ["benchmark.tasks=[banking.user_task_0,banking.user_task_1,slack.user_task_0]", "k=2", "workers=3"]


def command(store: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "xspec", *arguments, *SMALL, f"store={store}", "-m"]


def run(store: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(store, *arguments), capture_output=True, text=True, timeout=240, env={**os.environ, **environ}
    )


def outcomes(store: Path) -> dict[str, int]:
    """Arm → finished trials, over all executions."""
    found = {}
    for folder in executions_of(Store(store)):
        assert folder.info.arm is not None
        assert folder.info.arm not in found, "an arm was executed twice"
        found[folder.info.arm] = len(folder.progress().trials)
    return found


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    store = tmp_path_factory.mktemp("sweep") / "store"
    return store, run(store, "+arm=glob(guided*)", "hydra/launcher=joblib")


def test_glob_of_arms_runs_each_once(swept: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    store, done = swept
    assert done.returncode == 0, done.stderr
    assert outcomes(store) == {"guided": 6, "guided_floating": 6}
    for arm in outcomes(store):
        assert arm in done.stdout
    lock = executions_of(Store(store))[0].lock(1)
    assert lock["launcher"] == "joblib"


def test_a_finished_sweep_sends_nothing_and_says_so(
    swept: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    store, _ = swept
    before = sorted(p.name for p in (store / "executions").iterdir())
    again = run(store, "+arm=guided_floating,guided", "hydra/launcher=joblib")
    assert again.returncode == 0, again.stderr
    assert again.stderr.count("was finished before; nothing was sent") == 2
    assert sorted(p.name for p in (store / "executions").iterdir()) == before


def test_one_bad_arm_stops_the_sweep_before_its_first_job(tmp_path: Path) -> None:
    done = run(tmp_path / "s", "+arm=baseline", "sampling.temperature=0,9", "hydra/launcher=joblib")
    assert done.returncode == 2
    assert "sampling.temperature" in done.stderr
    assert "Traceback" not in done.stderr
    assert not executions_of(Store(tmp_path / "s"))


def test_every_arm_s_end_is_reported(tmp_path: Path) -> None:
    """Two arms that cannot be served: both are named, not only the first."""
    done = run(
        tmp_path / "s",
        "provider=openai_compatible",
        "provider.base_url=http://127.0.0.1:9/v1",
        "provider.model=m-2026-01-01",
        "provider.api_key_env=XSPEC_TEST_KEY",
        "+arm=baseline,guided",
        "route.retry.max_attempts=1",
        "hydra/launcher=joblib",
        XSPEC_TEST_KEY="test-key-of-no-value",
    )
    assert done.returncode in (1, 3)
    assert "Traceback" not in done.stderr
    for arm in ("baseline", "guided"):
        assert arm in done.stdout
    assert "no score" in done.stdout or "invalid" in done.stdout


def test_a_killed_sweep_leaves_no_process_and_goes_on(
    tmp_path: Path, swept: tuple[Path, subprocess.CompletedProcess[str]]
) -> None:
    store = tmp_path / "s"
    for name in ("blobs", "cache"):  # what the benchmark holds need not be asked again
        shutil.copytree(swept[0] / name, store / name)
    long = ["benchmark.limit=12", "k=3", "provider.faults.latency_s=0.1"]
    arguments = [*command(store, "+arm=baseline,guided", "hydra/launcher=joblib")[:-1], *long, "-m"]
    arguments = [a for a in arguments if not a.startswith("benchmark.tasks")]
    process = subprocess.Popen(
        arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    deadline = time.monotonic() + 60
    while not any(f.progress().trials for f in executions_of(Store(store))):
        assert time.monotonic() < deadline, "no trial within a minute"
        time.sleep(0.05)
    family = psutil.Process(process.pid).children(recursive=True)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    _, alive = psutil.wait_procs(family, timeout=60)
    assert not alive, [p.cmdline() for p in alive]
    kept = {f.info.arm: set(f.progress().trials) for f in executions_of(Store(store))}
    assert sum(map(len, kept.values())) < 72, "the kill came before the end"
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=240)
    assert done.returncode in (0, 1), done.stderr
    assert outcomes(store) == {"baseline": 36, "guided": 36}
    for folder in executions_of(Store(store)):
        assert kept.get(folder.info.arm, set()) <= set(folder.progress().trials)
