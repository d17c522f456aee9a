"""Guides by the real ALTK-Evolve from code trajectories: the loop on AppWorld's engine with own tasks."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from xspec.benchmarks import BENCHMARKS

pytestmark = pytest.mark.skipif("appworld" not in BENCHMARKS, reason="this xspec has no benchmark appworld")
SETTINGS = [
    "benchmark=appworld",
    "benchmark.split=test_normal",
    "agent=code_react",
    "k=2",
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
    """Trajectories are texts with code; marked blocks are where the model flips; the guided arm is similar-task."""
    words = ["loop", *SETTINGS, "--samples", "20", "--selection", "same-scenario"]
    done = subprocess.run(
        [sys.executable, "-m", "xspec", *words],
        cwd=tmp_path,
        env={**os.environ, "APPWORLD_ROOT": str(appworld_root)},
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr
    truth = re.search(r"(\d+) of (\d+) marked steps are ones where it flips", done.stderr)
    assert truth is not None
    assert 0 < int(truth[1]) == int(truth[2])
    assert "guided (similar-task)" in done.stdout
    (path,) = (tmp_path / "mlruns" / "guides").glob("*.json")
    guide = json.loads(path.read_bytes())
    sources = {task for rule in guide["rules"] for task in rule["source_tasks"]}
    steps = guide["provenance"]["uncertainty"]
    assert sources == {step["task"] for step in steps if step["marked"]}
