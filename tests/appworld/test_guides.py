"""Guides by the real ALTK-Evolve from code trajectories, on AppWorld's engine with own tasks."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from xspec.benchmarks import BENCHMARKS

pytestmark = pytest.mark.skipif("appworld" not in BENCHMARKS, reason="this xspec has no benchmark appworld")
TASKS = 6  # two scenarios of three
SETTINGS = [
    "benchmark=appworld",
    "benchmark.split=test_normal",
    f"benchmark.limit={TASKS}",
    "agent=code_react",
    "k=1",
    "provider.behaviour.unstable_tasks=1",
    "provider.behaviour.hopeless_tasks=0",
    "provider.behaviour.flip_alpha=20",
    "provider.behaviour.flip_beta=80",
    "provider.behaviour.detour=0",
    "provider.faults.garbled_arguments=0",
    *(f"provider.faults.{fault}=0" for fault in ("stall", "reset", "truncated_json", "other_model")),
]


def test_rules_for_the_other_tasks_of_a_scenario(
    appworld_root: Path, altk_environment: str, tmp_path: Path
) -> None:
    """Trajectories are texts with code; marked blocks are those where the model flips; the scope is similar-task."""

    def xspec(*words: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "xspec", *words],
            cwd=tmp_path,
            env={**os.environ, "APPWORLD_ROOT": str(appworld_root)},
            capture_output=True,
            text=True,
            timeout=500,
        )
        assert done.returncode == 0, done.stderr
        return done

    xspec("+arm=baseline", *SETTINGS)
    spec_id = next((tmp_path / "mlruns" / "specs").glob("xs-*.json")).stem
    made = xspec("guide", "generate", "--from", spec_id, "--samples", "20", "-o", "guide.json")
    truth = re.search(r"(\d+) of (\d+) marked steps are ones where it flips", made.stderr)
    assert truth is not None
    assert 0 < int(truth[1]) == int(truth[2])
    guide = json.loads((tmp_path / "guide.json").read_bytes())
    sources = {task for rule in guide["rules"] for task in rule["source_tasks"]}
    assert sources == {step["task"] for step in guide["provenance"]["uncertainty"] if step["marked"]}

    words = ["guide=altk", "guide.file=guide.json", "guide.selection=same-scenario"]
    shown = xspec("show", "+arm=guided", *SETTINGS, *words)
    assert re.search(rf"similar-task \d(, no rules \d)? of {TASKS} tasks", shown.stderr)
