"""The whole loop with the real ALTK-Evolve, on rehearsed AgentDojo trials: baseline, guide, guided arm, comparison."""

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from xspec.__main__ import main
from xspec.experiment.generation import GuideGeneration
from xspec.records.executions import ExecutionFolder, executions_of
from xspec.spec.store import Store

TASKS = [f"banking.user_task_{n}" for n in (2, 3, 4, 11, 12, 13, 14, 15)]
SMALL = [
    f"benchmark.tasks=[{','.join(TASKS)}]",
    "k=3",
    "provider.behaviour.unstable_tasks=1",
    "provider.behaviour.hopeless_tasks=0",
    "provider.behaviour.flip_alpha=20",  # a flip in five runs
    "provider.behaviour.flip_beta=80",
    "provider.behaviour.detour=0",
    *(f"provider.faults.{fault}=0" for fault in ("stall", "reset", "truncated_json", "other_model")),
    "provider.faults.garbled_arguments=0",
]
SAMPLES = ["--samples", "20"]  # so many that a step which flips is all but sure to be seen flipping
TRUTH = re.compile(
    r"(\d+) of (\d+) marked steps are ones where it flips .*; of (\d+) such steps (\d+) are marked"
)


def xspec(cwd: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "xspec", *words],
        cwd=cwd,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.fixture(scope="module")
def looped(altk_environment: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """Folder, output and messages of one loop."""
    cwd = tmp_path_factory.mktemp("loop")
    done = xspec(cwd, "loop", *SMALL, *SAMPLES, OPENAI_API_KEY="canary-of-a-provider-key")
    assert done.returncode == 0, done.stderr
    return cwd, done.stdout, done.stderr


@pytest.fixture(scope="module")
def guide(looped: tuple[Path, str, str]) -> dict[str, Any]:
    (path,) = (looped[0] / "mlruns" / "guides").glob("*.json")
    data: dict[str, Any] = json.loads(path.read_bytes())
    return data


def folders(cwd: Path) -> list[ExecutionFolder]:
    return executions_of(Store(cwd / "mlruns"))


def test_marked_steps_are_those_where_rehearsal_flips(looped: tuple[Path, str, str]) -> None:
    match = TRUTH.search(looped[2])
    assert match is not None, looped[2]
    hits, marked, true, again = map(int, match.groups())
    assert hits == again == marked > 0
    assert len(TASKS) - 1 <= true <= len(TASKS)  # one step of each task (a trial may be invalid)


def test_the_command_that_is_told_generates_the_same_guide(looped: tuple[Path, str, str]) -> None:
    told = re.search(r"next: python -m xspec (guide generate .*)", looped[2])
    assert told is not None
    assert " --samples 20 " in told[1]
    assert f" --store {looped[0] / 'mlruns'} " in told[1]


def test_every_call_went_through_the_frozen_route(
    looped: tuple[Path, str, str], guide: dict[str, Any]
) -> None:
    provenance = guide["provenance"]
    cwd = looped[0]
    store = Store(cwd / "mlruns")
    source = store.spec(provenance["spec_id"])
    by_id = {folder.path.name: folder for folder in folders(cwd)}
    sampling, writing = (store.spec(by_id[name].info.spec_id) for name in provenance["gateway_execution_ids"])
    assert sampling.route == writing.route == source.route
    assert (sampling.sampling.temperature, sampling.sampling.seed) == (0.5, None)
    assert writing.sampling == source.sampling
    calls = [row for name in provenance["gateway_execution_ids"] for row in by_id[name].rows("call")]
    assert len(calls) == provenance["calls"]
    assert {row["by"] for row in calls} == {"path"}
    assert {row["ended"] for row in calls} == {"answered"}
    assert {row["task"] for row in calls} <= set(TASKS)


def test_the_guide_says_where_it_is_from(guide: dict[str, Any]) -> None:
    provenance = guide["provenance"]
    assert (provenance["generator"], provenance["generator_version"]) == ("altk-evolve-core", "1.7.1")
    assert (provenance["method"], provenance["samples"], provenance["temperature"]) == ("accurate", 20, 0.5)
    assert provenance["simulated"] is True
    assert provenance["prompt_tokens"] > 0
    measured = provenance["uncertainty"]
    marked = {step["task"] for step in measured if step["marked"]}
    assert all(step["marked"] == (step["uncertainty"] > 0) for step in measured)
    assert marked == {task for rule in guide["rules"] for task in rule["source_tasks"]}
    assert all(rule["trigger"] and rule["steps"] for rule in guide["rules"])


def test_the_guided_arm_is_compared_under_its_scope(
    looped: tuple[Path, str, str], guide: dict[str, Any]
) -> None:
    cwd, out, _ = looped
    assert "guided (same-task) against baseline" in " ".join(out.split())
    sources = {task for rule in guide["rules"] for task in rule["source_tasks"]}
    arms = json.loads(xspec(cwd, "report", "--format", "json").stdout)["arms"]
    (guided,) = [arm for arm in arms if arm["arm"] == "guided"]
    counts = {"same-task": len(sources), "no rules": len(TASKS) - len(sources)}
    assert guided["guide"]["tasks_by_scope"] == {name: count for name, count in counts.items() if count}


def test_what_is_done_is_not_done_again(
    looped: tuple[Path, str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(looped[0])
    before = len(folders(looped[0]))
    assert main(["loop", *SMALL, *SAMPLES]) == 0
    assert "is there; remove it to generate it again" in capsys.readouterr().err
    assert len(folders(looped[0])) == before


def test_a_generation_that_was_cut_short_goes_on(
    looped: tuple[Path, str, str], guide: dict[str, Any]
) -> None:
    """From the real runs, which costs no samples: one trajectory is left, and the tail of the file was torn."""
    cwd = looped[0]
    source = guide["provenance"]["execution_id"]
    generation = {"method": "accurate", "samples": 5, "from_runs": True}
    rule = {"content": "Look first.", "rationale": "", "category": "strategy", "trigger": "", "support": 1}
    answer = {"guidelines": [rule], "steps": [], "scorable": 1}
    entries = [
        {"execution": source, "runs": [0], "generation": generation},
        *({"run": 0, "task": task, "answer": answer} for task in TASKS[:-1]),
    ]
    kept = "\n".join(json.dumps(entry) for entry in entries)
    (cwd / "again.json.partial").write_text(kept + '\n{"run": 0, "task": "banki')
    before = len(folders(cwd))
    done = xspec(cwd, "guide", "generate", "--from", source, "-o", "again.json", "--samples-from-runs")
    assert done.returncode == 0, done.stderr
    assert f"going on where it was interrupted: {len(TASKS) - 1} trajectories done" in done.stderr
    assert f"({guide['provenance']['spec_id']}): 1 trajectory, up to 1 call to write rules" in done.stderr
    assert not (cwd / "again.json.partial").exists()
    data = json.loads((cwd / "again.json").read_bytes())
    assert data["rules"][0] == {"content": "Look first.", "category": "strategy"} | {
        "support": len(TASKS) - 1,
        "evidence": data["rules"][0]["evidence"],
        "source_tasks": TASKS[:-1],
    }
    assert (data["provenance"]["sampled"], data["provenance"]["samples"]) == ("runs", 3)
    assert len(folders(cwd)) == before + 1  # a gateway for writing, and none for samples


def test_calls_that_cost_want_a_yes(
    looped: tuple[Path, str, str],
    guide: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(looped[0])
    monkeypatch.setattr(GuideGeneration, "costs", True)
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))  # an answer, but no terminal
    before = len(folders(looped[0]))
    source = guide["provenance"]["execution_id"]
    assert main(["guide", "generate", "--from", source, "-o", "paid.json", "--paper"]) == 2
    price, refusal = capsys.readouterr().err.splitlines()
    assert re.search(
        r"8 trajectories, [\d,]+ samples of \d+ steps .* prompt and [\d,]+ completion tokens", price
    )
    assert refusal.endswith("there is no terminal to ask; add --yes")
    assert len(folders(looped[0])) == before
    assert not list(looped[0].glob("paid.json*"))


def test_a_paid_loop_asks_before_anything_is_stored(
    altk_environment: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "canary-of-a-provider-key")
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    assert main(["loop", "provider=openai", "benchmark.limit=3", "k=2"]) == 2
    assert "takes up to 6 trials for the baseline, as many for the guided arm" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_no_key_reaches_the_library_or_the_store(looped: tuple[Path, str, str]) -> None:
    cwd = looped[0]
    for path in cwd.rglob("*"):
        if path.is_file():
            assert b"canary-of-a-provider-key" not in path.read_bytes(), path


WRONG = {
    "samples twice": (["--samples", "4", "--paper"], "give one of them"),
    "samples of fast": (["--method", "fast", "--paper"], "takes no samples"),
    "one sample": (["--samples", "1"], "a single reply can't be compared"),
    "a run there isn't": (["--runs", "0,7"], "has runs 0 to 2"),
    "runs that are none": (["--runs", "all"], "give run numbers like 0"),
    "no rules": (["--max-rules", "0"], "1 or more"),
}


@pytest.mark.parametrize(("options", "message"), WRONG.values(), ids=list(WRONG))
def test_wrong_options_are_one_line(
    looped: tuple[Path, str, str],
    guide: dict[str, Any],
    options: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(looped[0])
    source = guide["provenance"]["execution_id"]
    assert main(["guide", "generate", "--from", source, "-o", "wrong.json", *options]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1
    assert not list(looped[0].glob("wrong.json*"))


def test_a_place_that_cannot_be_written_to_is_one_line(
    looped: tuple[Path, str, str],
    guide: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(looped[0])
    (looped[0] / "blocked.json.partial").mkdir()
    source = guide["provenance"]["execution_id"]
    before = len(folders(looped[0]))
    assert main(["guide", "generate", "--from", source, "-o", "blocked.json"]) == 2
    err = capsys.readouterr().err
    assert "choose another -o" in err
    assert err.count("\n") == 1
    assert len(folders(looped[0])) == before
    (looped[0] / "blocked.json.partial").rmdir()
