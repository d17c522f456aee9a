"""Replay: stored replies served again, through the same loop and a fresh world, without a model.

If requests, observations and verdict come out the same, what varies between runs is the model and its route. If they
do not, the benchmark itself is a source of noise.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from xspec.agents import AGENTS
from xspec.agents.turns import Episode
from xspec.benchmarks.pool import WorkerPool
from xspec.counted import counted
from xspec.errors import WorkerError
from xspec.experiment.arm_execution import trial_inputs
from xspec.experiment.trial import JUDGE_TIMEOUT_S, OPEN_TIMEOUT_S, TrialInput
from xspec.records.executions import ExecutionFolder
from xspec.records.rows import Place, Step, Trial
from xspec.route.body import fixed_fields, opening
from xspec.route.conversation import Conversation
from xspec.route.faults import AgentFault
from xspec.route.reply import Reply
from xspec.spec.canonical import digest_of
from xspec.spec.models import ExperimentSpec
from xspec.spec.store import Store, write_whole

UNREPLAYABLE = ("world_broke", "worker_broke")
"""Trials that ended so have no whole story to serve again."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """One replayed trial. `difference` is the first thing that came out otherwise, None if nothing did."""

    run: int
    task: str
    difference: str | None


class Replayer:
    """Replays trials of one execution, each in a fresh world of `pool`."""

    def __init__(self, store: Store, folder: ExecutionFolder, spec: ExperimentSpec, pool: WorkerPool) -> None:
        self.spec = spec
        self._pool = pool
        self._inputs = trial_inputs(store, spec)
        self._openings = {m.name: opening(fixed_fields(m, spec.sampling)) for m in spec.route.members}
        self._steps: dict[tuple[int, str, int], list[Step]] = {}
        for row in folder.rows("step"):
            step = Step(**row)
            self._steps.setdefault((step.run, step.task, step.take), []).append(step)

    async def replay(self, trial: Trial) -> Replayed:
        """Serves the stored replies of one trial and compares what comes of them."""
        steps = self._steps.get((trial.run, trial.task, trial.take), [])
        script = _Script(self._openings, steps, trial)
        given = self._inputs[trial.task]
        try:
            difference = await self._play(given, trial, script)
        except _Differs as found:
            difference = str(found)
        except WorkerError as error:
            difference = f"the world broke: {error}"
        return Replayed(trial.run, trial.task, difference)

    async def _play(self, given: TrialInput, trial: Trial, script: "_Script") -> str | None:
        agent = self.spec.agent
        conversation = given.conversation()

        async def ask(place: Place) -> Reply:
            return script.reply(conversation, place.step)

        async with self._pool.world(trial.task, trial.run, open_timeout_s=OPEN_TIMEOUT_S) as world:
            begin = Place(trial.run, trial.task, trial.take, 0)
            try:
                episode = Episode(
                    given.instruction, conversation, given.tool_names, world, ask, begin, script.compare
                )
                ending = await AGENTS[agent.kind].play(agent, episode)
            except _StoryEnds:
                return None
            if ending.how != trial.ended:
                return f"it ended as {ending.how}, not as {trial.ended}"
            if ending.answer is None:
                return None
            verdict = await world.judge(ending.answer, JUDGE_TIMEOUT_S)
        if verdict.get("passed") != (trial.verdict or {}).get("passed"):
            return f"the verdict is {verdict.get('passed')}, it was {(trial.verdict or {}).get('passed')}"
        return None


class _Differs(Exception):
    """Something came out otherwise than it is stored."""


class _StoryEnds(Exception):
    """The route failed here: what came before was the same."""


class _Script:
    """The stored replies of a trial, and the comparison with its stored steps."""

    def __init__(self, openings: dict[str, bytes], steps: Sequence[Step], trial: Trial) -> None:
        self._openings = openings
        self._steps = steps
        self._trial = trial

    def reply(self, conversation: Conversation, number: int) -> Reply:
        """The stored reply of a step, if the request for it is the stored one."""
        if number >= len(self._steps):
            if self._trial.ended in ("context_overflow", "content_filter"):
                fault = AgentFault("as stored")
                fault.token = self._trial.ended
                raise fault
            raise _StoryEnds
        step = self._steps[number]
        digest = digest_of(conversation.body(self._openings[step.member]))
        if digest != step.request_digest:
            raise _Differs(f"step {number}: the request has another digest ({digest[:19]}…)")
        message = next(m for m in step.added if m["role"] == "assistant")
        stored = {**message, "refusal": step.refusal}
        return Reply(stored, step.finish_reason, None, None, 1, 0.0, digest, None, step.member)

    def compare(self, step: Step) -> None:
        """Raises if a step's observations are not the stored ones."""
        stored = self._steps[step.step]
        for was, now in zip(stored.added, step.added, strict=False):
            if was != now:
                raise _Differs(f"step {step.step}: {_first_difference(was, now)}")
        if len(stored.added) != len(step.added):
            raise _Differs(
                f"step {step.step} added {counted(len(step.added), 'message')}, it was {len(stored.added)}"
            )


def _first_difference(was: dict[str, Any], now: dict[str, Any]) -> str:
    key = next(key for key in sorted(was.keys() | now.keys()) if was.get(key) != now.get(key))
    a, b = str(was.get(key)), str(now.get(key))
    at = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    shown = slice(max(0, at - 20), at + 40)
    return f"{key} of a {was['role']} message differs at character {at}: {a[shown]!r} then, {b[shown]!r} now"


def keep_result(folder: ExecutionFolder, results: Sequence[Replayed]) -> None:
    """Leaves the result of a whole execution's replay where the report finds it."""
    differing = [{"run": r.run, "task": r.task, "difference": r.difference} for r in results if r.difference]
    content = {"trials": len(results), "identical": len(results) - len(differing), "differing": differing}
    write_whole(folder.path / "replay.json", json.dumps(content, indent=1).encode())
