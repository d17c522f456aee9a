"""A world that breaks: the agent's doing is a fail, the machine's is invalid and tried once more."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

from xspec.agents.offer import Offer
from xspec.benchmarks.pool import WorkerPool
from xspec.errors import WorkerDied
from xspec.experiment.trial import Tally, TrialInput, TrialRunner
from xspec.route.client import Route
from xspec.route.conversation import Pins
from xspec.route.reply import Reply
from xspec.spec.agents import ToolLoopAgent


def test_agent_that_kills_every_world_has_failed(lab: Any, kit: Any) -> None:
    server = kit.ChatServer(lambda n, request: (200, kit.completion(None, ("die", {}))))
    with server.serving():
        finished = lab.here("k=1", "benchmark.limit=1", *kit.LAB, *server.overrides, LAB_KEY=kit.KEY)
    assert finished.code == 0
    assert set(kit.outcomes(lab.only()).values()) == {("fail", "killed_world")}
    assert len(server.requests) == 1, "the replay asks no model"


def test_world_that_died_once_is_run_again(lab: Any, kit: Any, tmp_path: Path) -> None:
    once = {"once": str(tmp_path / "died")}

    def answer(number: int, request: dict[str, Any]) -> tuple[int, Any]:
        if request["messages"][-1]["role"] == "user":
            return 200, kit.completion(None, ("die", once), ("add", {"amount": 3}))
        return 200, kit.completion("done")

    server = kit.ChatServer(answer)
    with server.serving():
        finished = lab.here("k=1", "benchmark.limit=1", *kit.LAB, *server.overrides, LAB_KEY=kit.KEY)
    assert finished.code == 0
    progress = lab.only().progress()
    (trial,) = progress.trials.values()
    assert (trial.outcome, trial.take, progress.superseded) == ("pass", 1, 1)


def test_member_then_zygote_died_by_the_machine_s_doing(lab: Any, kit: Any, tmp_path: Path) -> None:
    """The replay's world dies too, but with its zygote: nothing is said about the agent, and the trial is run again."""
    log = {"log": str(tmp_path / "mishaps")}

    def answer(number: int, request: dict[str, Any]) -> tuple[int, Any]:
        if request["messages"][-1]["role"] == "user":
            return 200, kit.completion(None, ("mishaps", log), ("add", {"amount": 3}))
        return 200, kit.completion("done")

    server = kit.ChatServer(answer)
    with server.serving():
        finished = lab.here("k=1", "benchmark.limit=1", *kit.LAB, *server.overrides, LAB_KEY=kit.KEY)
    assert finished.code == 0, finished.err
    assert (tmp_path / "mishaps").read_text() == "...", "the trial, its replay, the second take"
    first, second = lab.only().rows("trial")
    assert (first["outcome"], first["cause"]) == ("invalid", "worker")
    assert first["detail"].endswith("with its zygote")
    assert (second["outcome"], second["take"]) == ("pass", 1)


def test_tool_that_hangs_each_time_has_failed(lab: Any, kit: Any) -> None:
    server = kit.ChatServer(lambda n, request: (200, kit.completion(None, ("sleep", {"seconds": 3600}))))
    with server.serving():
        finished = lab.here(
            *("k=1", "benchmark.limit=1", "agent.tool_timeout_s=0.2", *kit.LAB, *server.overrides),
            LAB_KEY=kit.KEY,
        )
    assert finished.code == 0
    assert set(kit.outcomes(lab.only()).values()) == {("fail", "tool_timeout")}


class _World:
    async def act(self, action: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        raise WorkerDied("the worker died during 'act'")


class _Pool:
    """Its first world breaks, and there is no second one."""

    def __init__(self) -> None:
        self.opened = 0

    @asynccontextmanager
    async def world(
        self, task: str, run: int, *, open_timeout_s: float, folder: Path | None = None
    ) -> AsyncIterator[_World]:
        self.opened += 1
        if self.opened > 1:
            raise WorkerDied("the zygote ended")
        yield _World()


class _Route:
    async def call(self, conversation: Any, pins: Pins, place: Any) -> Reply:
        call = {"id": "c", "type": "function", "function": {"name": "add", "arguments": "{}"}}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        return Reply(message, "tool_calls", 1, 1, 1, 0.0, "sha256:0", "m", "main")


def test_world_that_cannot_be_opened_for_the_replay_says_nothing_about_the_agent() -> None:
    agent = ToolLoopAgent(
        kind="tool_loop", version=1, max_steps=3, tool_timeout_s=1, prompt="sha256:" + "0" * 64
    )
    route, pool = _Route(), _Pool()
    runner = TrialRunner(
        agent, cast(Route, route), cast(WorkerPool, pool), lambda step: None, lambda run, task, take: Tally()
    )
    given = TrialInput("lab.task_0", "system", "instruction", Offer(), ("add",), Pins("", "", None))
    trial, again = asyncio.run(runner.run(given, 0, 0))
    assert pool.opened == 2
    assert (trial.outcome, trial.cause, again) == ("invalid", "worker", True)
