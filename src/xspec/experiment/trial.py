"""One trial: a fresh world, the agent's turns in it, a verdict; and what each way of ending counts as."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from xspec.agents import AGENTS
from xspec.agents.offer import Offer
from xspec.agents.turns import Episode
from xspec.benchmarks.pool import WorkerPool
from xspec.errors import WorkerDied, WorkerError, WorkerHung, ZygoteDied
from xspec.records.rows import AttemptEnded, AttemptStarted, Outcome, Place, Step, Trial
from xspec.route.client import Route
from xspec.route.conversation import Conversation, Pins
from xspec.route.faults import CallFailed
from xspec.route.reply import Reply
from xspec.spec.agents import PlayedAgent

OPEN_TIMEOUT_S = 120.0
JUDGE_TIMEOUT_S = 300.0
ROUTE_CAUSE = "route:"
"""Trials that the route made invalid have a cause that begins with this."""
WORKER_CAUSE = "worker"
"""The cause of trials that a broken worker made invalid."""


@dataclass(frozen=True, slots=True)
class TrialInput:
    """What is frozen about one task of an arm: texts, tools, and the digests the guard compares with."""

    task: str
    system: str
    instruction: str
    offer: Offer
    tool_names: tuple[str, ...]
    pins: Pins

    def conversation(self) -> Conversation:
        """The messages and body fields that every trial of the task begins with."""
        offer = self.offer
        return Conversation(self.system, self.instruction, offer.tools, response_format=offer.response_format)


@dataclass(slots=True)
class Tally:
    """Counts of one take, fed by the attempt rows as they are recorded."""

    calls: set[tuple[int, int]] = field(default_factory=set)
    attempts: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    waited_s: float = 0.0

    def add(self, row: AttemptStarted | AttemptEnded) -> None:
        if isinstance(row, AttemptStarted):
            self.calls.add((row.step, row.call))
            self.attempts += 1
        else:
            self.prompt_tokens += row.prompt_tokens or 0
            self.completion_tokens += row.completion_tokens or 0
            self.waited_s += row.waited_s


@dataclass(frozen=True, slots=True)
class _End:
    outcome: Outcome
    cause: str | None
    ended: str
    verdict: dict[str, Any] | None = None
    steps: int = 0
    detail: str | None = None
    worker_broke: bool = False


@dataclass(slots=True)
class TrialRunner:
    """Runs the trials of one arm. `record_step` and `tally` connect it to the journal; `world_folder` makes the
    folder of a (run, task, take), for benchmarks that keep what happened in their worlds.
    """

    agent: PlayedAgent
    route: Route
    pool: WorkerPool
    record_step: Callable[[Step], None]
    tally: Callable[[int, str, int], Tally]
    world_folder: Callable[[int, str, int], Path] | None = None

    async def run(self, given: TrialInput, run: int, take: int) -> tuple[Trial, bool]:
        """The finished trial, and whether a broken worker made it invalid (then it may be run again once).

        Raises SpecDrift and RouteStopped, which are not about this trial but about all of them.
        """
        started = time.time()
        drift: list[str] = []
        steps = 0
        tally = self.tally(run, given.task, take)

        def on_step(step: Step) -> None:
            nonlocal steps
            steps = step.step + 1
            self.record_step(step)

        try:
            end = await self._play(given, Place(run, given.task, take, 0), on_step, drift)
        except CallFailed as error:
            end = _End("invalid", ROUTE_CAUSE + error.token, "route_failed", steps=steps, detail=str(error))
        except WorkerError as error:
            end = _End(
                "invalid", WORKER_CAUSE, "worker_broke", steps=steps, detail=str(error), worker_broke=True
            )
        if drift and end.outcome != "invalid":
            end = _End("invalid", "drift", end.ended, end.verdict, end.steps, end.detail)
        trial = Trial(
            run=run,
            task=given.task,
            take=take,
            outcome=end.outcome,
            cause=end.cause,
            ended=end.ended,
            verdict=end.verdict,
            steps=end.steps,
            calls=len(tally.calls),
            attempts=tally.attempts,
            retry_count=tally.attempts - len(tally.calls),
            prompt_tokens=tally.prompt_tokens,
            completion_tokens=tally.completion_tokens,
            waited_s=round(tally.waited_s, 6),
            started_at=started,
            ended_at=time.time(),
            drift=sorted(set(drift)),
            detail=end.detail,
        )
        return trial, end.worker_broke

    async def _play(
        self, given: TrialInput, begin: Place, on_step: Callable[[Step], None], drift: list[str]
    ) -> _End:
        conversation = given.conversation()
        actions: list[dict[str, Any]] = []

        async def ask(place: Place) -> Reply:
            reply = await self.route.call(conversation, given.pins, place)
            drift.extend(reply.drift)
            return reply

        acting = True
        try:
            folder = self._folder(begin)
            async with self.pool.world(
                given.task, begin.run, open_timeout_s=OPEN_TIMEOUT_S, folder=folder
            ) as world:
                episode = Episode(
                    given.instruction, conversation, given.tool_names, world, ask, begin, on_step, actions
                )
                ending = await AGENTS[self.agent.kind].play(self.agent, episode)
                acting = False
                if ending.answer is None:
                    return _End("fail", ending.how, ending.how, steps=ending.steps)
                verdict = await world.judge(ending.answer, JUDGE_TIMEOUT_S)
                return _judged(verdict, ending.steps)
        except ZygoteDied:
            raise
        except (WorkerDied, WorkerHung) as error:
            if acting and actions and await self._dies_again(given, begin.run, actions):
                hung = isinstance(error, WorkerHung)
                return _End(
                    "fail", "tool_timeout" if hung else "killed_world", "world_broke", detail=str(error)
                )
            raise

    def _folder(self, place: Place) -> Path | None:
        if self.world_folder is None or not self.pool.keeps_output:
            return None
        try:
            return self.world_folder(place.run, place.task, place.take)
        except OSError as error:
            raise WorkerError(f"the world's folder cannot be made: {error.strerror}") from None

    async def _dies_again(self, given: TrialInput, run: int, actions: list[dict[str, Any]]) -> bool:
        """Whether the stored actions break a fresh world too: then the agent's code did it, not the machine.

        Raises WorkerError if there is no fresh world to be had, or if it dies with its zygote: neither says anything
        about the agent.
        """
        async with self.pool.world(given.task, run, open_timeout_s=OPEN_TIMEOUT_S) as world:
            try:
                for action in actions:
                    await world.act(action, self.agent.tool_timeout_s)
            except ZygoteDied:
                raise
            except (WorkerDied, WorkerHung):
                return True
        return False


def _judged(verdict: dict[str, Any], steps: int) -> _End:
    passed = verdict.get("passed")
    if passed is None:
        return _End("invalid", "verdict_null", "answered", verdict, steps)
    return (
        _End("pass", None, "answered", verdict, steps)
        if passed
        else _End("fail", "verdict", "answered", verdict, steps)
    )
