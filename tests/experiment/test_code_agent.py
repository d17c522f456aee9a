"""A benchmark that is acted in by code, carried out, rehearsed, replayed and reported like any other."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from xspec.benchmarks import BENCHMARKS, Launch
from xspec.benchmarks.checks import check_tasks, unexplained
from xspec.benchmarks.pool import WorkerPool

CODE_BENCHMARK = Path(__file__).parents[1] / "benchmarks" / "code_benchmark.py"
CODEBANK = (
    *("benchmark.kind=codebank", "benchmark.version='1'", "benchmark.exclude=[]", "agent=code_react"),
    "workers=4",
)
K, TASKS = 3, 12


@pytest.fixture(autouse=True, scope="module")
def _codebank_is_known() -> Iterator[None]:
    BENCHMARKS["codebank"] = Launch(CODE_BENCHMARK)
    yield
    BENCHMARKS.pop("codebank")


def solutions() -> dict[str, Any]:
    async def ask() -> dict[str, Any]:
        async with WorkerPool("codebank", "1", "all", {}, members=1, log=None) as pool:
            return await pool.solutions()

    return asyncio.run(ask())


def test_solutions_pass_and_doing_nothing_fails() -> None:
    async def check() -> list[str]:
        async with WorkerPool("codebank", "1", "all", {}, members=1, log=None) as pool:
            return unexplained(await check_tasks(pool), ())

    assert asyncio.run(check()) == []


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        ((*CODEBANK, "agent=tool_loop"), "agent tool_loop makes tool calls, and tasks of codebank take code"),
        (("agent=code_react",), "agent code_react writes code, and tasks of agentdojo take tool calls"),
    ],
)
def test_an_agent_that_cannot_act_there_is_refused(lab: Any, overrides: tuple[str, ...], said: str) -> None:
    finished = lab.here("k=1", "benchmark.limit=1", *overrides)
    assert finished.code == 2
    assert said in finished.err
    assert len(finished.err.splitlines()) == 1


def test_judged_outcomes_are_those_intended(lab: Any, kit: Any, intent: Any) -> None:
    rates = kit.faults(server_error=0.1, too_many_requests=0.05, garbled_arguments=0.15)
    run = [f"k={K}", f"benchmark.limit={TASKS}", *CODEBANK, *rates, "+arm=baseline,guided", "-m"]
    finished = lab.here(*run, "confirm=true")  # a rehearsal costs nothing: nobody is asked
    assert finished.code in (0, 1), finished.err
    known = solutions()
    arms = {arm["arm"]: arm for arm in lab.report()["arms"]}
    assert set(arms) == {"baseline", "guided"}
    ends: set[str] = set()
    for folder in lab.executions():
        spec = lab.store.spec(folder.info.spec_id)
        meant = intent(lab.store, spec, known)
        trials = folder.progress().trials
        ends |= {trial.ended for trial in trials.values()}
        intended = {place: meant.outcome(folder.path.name, *place) for place in trials}
        assert {place: trial.outcome for place, trial in trials.items()} == intended
        assert len(intended) == K * TASKS
        assert set(intended.values()) >= {"pass", "fail"}
        passes = [sum(intended[run, task] == "pass" for run in range(K)) for task in spec.benchmark.tasks]
        if "invalid" not in intended.values():
            gap = 100 * sum(c / K - (c == K) for c in passes) / TASKS
            assert arms[folder.info.arm]["gap_pp"] == pytest.approx(gap)
    assert ends <= {"answered", "route_failed"}, "giving up is declared by code, not by running out of steps"

    told = [row["added"][-1]["content"] for folder in lab.executions() for row in folder.rows("step")]
    assert any("SyntaxError" in text for text in told), "garbled blocks reached the world"
    names = {
        call["name"]
        for folder in lab.executions()
        for row in folder.rows("step")
        for entry in row["actions"]
        for call in entry.get("calls", ())
    }
    assert names == {"bank.list_accounts", "bank.send_payment", "supervisor.complete_task"}

    for folder in lab.executions():
        replayed = lab.here("replay", folder.path.name)
        assert replayed.code == 0, replayed.out
        assert json.loads((folder.path / "replay.json").read_bytes())["differing"] == []


def test_a_rule_that_names_an_api_covers_the_points_that_use_it(lab: Any, kit: Any) -> None:
    steady = ["provider.behaviour.unstable_tasks=1", "provider.behaviour.hopeless_tasks=0"]
    certain = ["provider.behaviour.flip_alpha=1000", "provider.behaviour.flip_beta=0.001"]
    effect = ["provider.behaviour.guide_effect=1", "provider.behaviour.detour=0"]
    rule = lab.cwd / "guide.md"
    rule.write_text("- Check the balance before bank.send_payment is called.\n")
    finished = lab.here(
        *("k=1", "benchmark.limit=20", *CODEBANK, *kit.faults(), *steady, *certain, *effect),
        *("guide=file", f"guide.file={rule}"),
    )
    assert finished.code == 0, finished.err
    passed = {task for (_, task), (outcome, _) in kit.outcomes(lab.only()).items() if outcome == "pass"}
    gave_up = {
        row["task"]: row["step"]
        for row in lab.only().rows("step")
        if "fail" in row["actions"][0]["action"]["code"]
    }
    assert 0 < len(passed) < 20
    assert set(gave_up.values()) == {0, 4}, "at the first and the last block, which pay nobody"
    assert passed.isdisjoint(gave_up)
