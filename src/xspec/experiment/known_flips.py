"""Of a rehearsed execution the truth is known: the steps where the simulated model flips, and how many were found."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from xspec.experiment.generate_guide import Analysed
from xspec.experiment.rehearse import kept_solutions, rehearsal_members
from xspec.experiment.trajectories import Trajectory
from xspec.rehearsal.behaviour import Player
from xspec.rehearsal.guide import coverage_of
from xspec.rehearsal.scripts import TaskScript, progress_of
from xspec.spec.models import ExperimentSpec
from xspec.spec.store import Store

Step = tuple[int, str, int]
"""Run, task, step."""


@dataclass(frozen=True, slots=True)
class Found:
    """Marked steps against those where the model really flips. `silent` are true ones whose reply was empty, `detours`
    steps at which a run may read what it need not: runs part there too, but nothing flips.
    """

    marked: frozenset[Step]
    true: frozenset[Step]
    silent: frozenset[Step]
    detours: frozenset[Step] = frozenset()

    @property
    def precision(self) -> float | None:
        """Share of marked steps that are true; None if none is marked."""
        return len(self.marked & self.true) / len(self.marked) if self.marked else None

    @property
    def recall(self) -> float | None:
        """Share of true steps that are marked; None if there is none."""
        return len(self.marked & self.true) / len(self.true) if self.true else None

    def text(self) -> str:
        """One line."""
        hits = len(self.marked & self.true)
        precision = "no precision" if self.precision is None else f"precision {100 * self.precision:.0f}%"
        recall = "no recall" if self.recall is None else f"recall {100 * self.recall:.0f}%"
        text = (
            f"SIMULATED MODEL, so the truth is known: {hits} of {len(self.marked)} marked steps are ones where it "
            f"flips ({precision}); of {len(self.true)} such steps {hits} are marked ({recall})"
        )
        unseen, aside = len(self.silent - self.marked), len((self.marked - self.true) & self.detours)
        if unseen:
            text += f"; at {unseen} the run gave up with an empty reply, which is not scored"
        return text + (
            f"; at {aside} of the others runs part by a detour, which changes nothing" if aside else ""
        )


def found_flips(
    spec: ExperimentSpec, store: Store, wanted: Sequence[Trajectory], analysed: Sequence[Analysed]
) -> Found | None:
    """None where a real model was called, or where nothing was measured."""
    members = rehearsal_members(spec)
    solutions = kept_solutions(spec.benchmark, store) if members else None
    marked = frozenset(
        (one.run, one.task, step["step"])
        for one in analysed
        for step in one.answer.get("steps", ())
        if step["marked"]
    )
    if solutions is None or not any(one.answer.get("steps") for one in analysed):
        return None
    instructions = {
        row["id"]: row["instruction"] for row in store.json_blob(spec.benchmark.manifest)["tasks"]
    }
    player = Player(members[0].behaviour)
    true, silent, detours = set(), set(), set()
    for one in wanted:
        script = TaskScript.of(one.task, {**solutions[one.task], "instruction": instructions[one.task]})
        for step, place in enumerate(one.steps):
            flips, detour = _varies(player, script, one, place)
            if detour:
                detours.add((one.run, one.task, step))
            if flips:
                true.add((one.run, one.task, step))
                reply = one.messages[place]
                if not reply.get("tool_calls") and not str(reply.get("content") or "").strip():
                    silent.add((one.run, one.task, step))
    return Found(marked, frozenset(true), frozenset(silent), frozenset(detours))


def _varies(player: Player, script: TaskScript, one: Trajectory, place: int) -> tuple[bool, bool]:
    """Whether the model, asked again at this place, would now do one thing and now another: by a flip, by a detour."""
    before: list[Any] = list(one.messages[:place])
    progress, difficulty = progress_of(script, before), player.difficulty(script)
    point = progress.done
    if point >= script.points:
        return False, False
    names = frozenset(tool["function"]["name"] for tool in one.tools)
    apis = frozenset(name for call in script.calls for name in call.names)
    coverage = coverage_of(str(one.messages[0]["content"]), names or apis)
    detour = not progress.detoured and 0 < player.detour_chance(script, point, coverage) < 1
    if point != difficulty.point:
        return False, detour
    covered = coverage.covers(script.names_at(point))
    return 0 < difficulty.flip_chance(covered, player.behaviour.guide_effect) < 1, detour
