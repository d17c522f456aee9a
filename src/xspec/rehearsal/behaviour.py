"""What the simulated model does next: the known solution, with errors made on purpose. Pure functions.

At every decision point (a call index of the solution) the model, in this order,

1. after an error it could see, gives up with chance `replan`, if giving up here fails for certain;
2. at the task's unstable point, *flips* with the task's flip chance: it gives up;
3. with chance `detour`, once a point, reads what it need not: the chain of tools changes, no verdict does;
4. makes the due call, or answers when all are made.

Calls are tool calls or, where a task is acted in by code, blocks of it; giving up is an empty answer or a block.

Nothing is remembered between requests: the progress is read off the messages, and every draw is a hash of the
behaviour's settings, the execution, run, task, call index (or step) and purpose. Neither the member nor the
attempt is among them: who serves a call, and how often it was retried, changes faults only.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from xspec.rehearsal.code import Block
from xspec.rehearsal.difficulty import Difficulty, difficulty_of
from xspec.rehearsal.draws import pick, uniform
from xspec.rehearsal.guide import UNGUIDED, Coverage
from xspec.rehearsal.scripts import Call, Progress, TaskScript, progress_of
from xspec.spec.canonical import canonical_bytes, digest_of
from xspec.spec.members import RehearsalBehaviour

Purpose = Literal["call", "detour", "answer", "give_up"]


@dataclass(frozen=True, slots=True)
class Turn:
    """One reply of the model, before faults: a tool call or block of code, or the text that ends the trial."""

    purpose: Purpose
    step: int
    call: Call | Block | None = None
    text: str = ""


class Player:
    """Plays tasks as one behaviour does. Keeps nothing but what follows from its settings."""

    def __init__(self, behaviour: RehearsalBehaviour) -> None:
        self.behaviour = behaviour
        self._difficulties: dict[str, Difficulty] = {}

    @cached_property
    def digest(self) -> str:
        """Digest of the settings: part of every behaviour draw."""
        return digest_of(canonical_bytes(self.behaviour.model_dump(mode="python")))

    def difficulty(self, script: TaskScript) -> Difficulty:
        """The task's difficulty, computed once. A player knows one solution a task id."""
        known = self._difficulties.get(script.task)
        if known is None:
            known = self._difficulties[script.task] = difficulty_of(self.behaviour, script)
        return known

    def turn(
        self,
        script: TaskScript,
        messages: Sequence[Any],
        execution: str,
        run: int,
        coverage: Coverage = UNGUIDED,
    ) -> Turn:
        """The model's next turn in the trial (execution, run, task) whose messages these are."""
        progress = progress_of(script, messages)
        point, step = progress.done, progress.step
        place = (self.digest, execution, run, script.task)
        if self._gives_up(script, progress, place, coverage):
            return Turn("give_up", step, script.give_up)
        if point >= len(script.calls):
            return Turn("answer", step, text=script.answer)
        detour = None if progress.detoured else self._detour(script, point, place, coverage)
        if detour is not None:
            return Turn("detour", step, detour)
        return Turn("call", step, script.calls[point])

    def detour_chance(self, script: TaskScript, point: int, coverage: Coverage) -> float:
        """The chance of a detour before call `point`: none where there is nothing to read."""
        if not script.detours_at(point):
            return 0.0
        covered = coverage.covers(script.names_at(point))
        return self.behaviour.detour * (1 - self.behaviour.guide_effect if covered else 1)

    def _gives_up(
        self, script: TaskScript, progress: Progress, place: tuple[str | int, ...], coverage: Coverage
    ) -> bool:
        point = progress.done
        if point >= script.points:
            return False
        # Drawn by step: a call garbled twice is two chances to give up, while a flip is drawn once a trial.
        if progress.garbled and uniform(*place, progress.step, "replan") < self.behaviour.replan:
            return True
        difficulty = self.difficulty(script)
        if point != difficulty.point:
            return False
        covered = coverage.covers(script.names_at(point))
        chance = difficulty.flip_chance(covered, self.behaviour.guide_effect)
        return uniform(*place, point, "flip") < chance

    def _detour(
        self, script: TaskScript, point: int, place: tuple[str | int, ...], coverage: Coverage
    ) -> Call | Block | None:
        chance = self.detour_chance(script, point, coverage)
        if not chance or uniform(*place, point, "detour") >= chance:
            return None
        reads = script.detours_at(point)
        return reads[pick(len(reads), *place, point, "which")]
