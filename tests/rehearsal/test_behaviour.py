from collections.abc import Callable
from typing import Any

import pytest

from xspec.rehearsal.behaviour import Player, Turn
from xspec.rehearsal.faults import FaultDice, Place
from xspec.rehearsal.guide import UNGUIDED, Coverage
from xspec.rehearsal.scripts import TaskScript, progress_of
from xspec.spec.members import RehearsalBehaviour, RehearsalFaults

Settings = Callable[..., dict[str, Any]]


def play(
    player: Player,
    dice: FaultDice,
    script: TaskScript,
    execution: str,
    run: int,
    coverage: Coverage = UNGUIDED,
) -> list[Turn]:
    """One trial without HTTP: every turn of it."""
    return play_to_the_end(player, dice, script, execution, run, coverage)[0]


def play_to_the_end(
    player: Player,
    dice: FaultDice,
    script: TaskScript,
    execution: str,
    run: int,
    coverage: Coverage = UNGUIDED,
) -> tuple[list[Turn], int]:
    """The turns, and how many calls of the solution were made."""
    messages: list[Any] = [{"role": "user", "content": script.instruction}]
    turns = []
    for step in range(200):
        turn = player.turn(script, messages, execution, run, coverage)
        turns.append(turn)
        if turn.call is None:
            return turns, progress_of(script, messages).done
        text = dice.arguments(turn.call.text, Place(execution, run, script.task, step, 0))
        function = {"name": turn.call.name, "arguments": text}
        messages.append({"role": "assistant", "tool_calls": [{"id": "c", "function": function}]})
        messages.append({"role": "tool", "tool_call_id": "c", "content": "ok"})
    raise AssertionError("the trial does not end")


def test_without_errors_the_solution_is_played(
    behaviour: Settings, faults: Settings, scripts: list[TaskScript]
) -> None:
    player, dice = Player(RehearsalBehaviour(**behaviour())), FaultDice("m", RehearsalFaults(**faults()))
    for script in scripts:
        turns = play(player, dice, script, "e", 0)
        assert [turn.call for turn in turns] == [*script.calls, None]
        assert turns[-1].text == script.answer
        assert [turn.step for turn in turns] == list(range(len(turns)))


def test_a_trial_is_the_same_again_and_another_execution_is_not(
    behaviour: Settings, faults: Settings, scripts: list[TaskScript]
) -> None:
    settings = RehearsalBehaviour(**behaviour(unstable_tasks=1.0, detour=0.3, replan=0.3))
    dice = FaultDice("m", RehearsalFaults(**faults(garbled_arguments=0.2)))

    def trials(execution: str) -> list[list[Turn]]:
        return [
            play(Player(settings), dice, script, execution, run) for script in scripts for run in range(4)
        ]

    assert trials("e1") == trials("e1") != trials("e2")


def test_giving_up_happens_where_it_fails_for_certain(
    behaviour: Settings, faults: Settings, scripts: list[TaskScript]
) -> None:
    settings = RehearsalBehaviour(**behaviour(unstable_tasks=0.5, hopeless_tasks=0.5, detour=0.3, replan=0.5))
    player, dice = Player(settings), FaultDice("m", RehearsalFaults(**faults(garbled_arguments=0.3)))
    given_up = 0
    for script in scripts:
        for run in range(40):
            turns, done = play_to_the_end(player, dice, script, "e", run)
            if turns[-1].purpose == "give_up":
                given_up += 1
                assert done <= script.commit
                assert turns[-1].text == ""
    assert given_up > 100


def test_a_hopeless_task_fails_guide_or_not(
    behaviour: Settings, faults: Settings, scripts: list[TaskScript]
) -> None:
    player = Player(RehearsalBehaviour(**behaviour(hopeless_tasks=1.0, guide_effect=1.0)))
    dice = FaultDice("m", RehearsalFaults(**faults()))
    for script in scripts:
        for coverage in (UNGUIDED, Coverage(True)):
            assert play(player, dice, script, "e", 0, coverage)[-1].purpose == "give_up"


def test_a_guide_lowers_flips_and_detours_where_it_covers(
    behaviour: Settings, faults: Settings, scripts: list[TaskScript]
) -> None:
    settings = RehearsalBehaviour(**behaviour(unstable_tasks=1.0, detour=0.4, guide_effect=0.6))
    player, dice = Player(settings), FaultDice("m", RehearsalFaults(**faults()))

    def count(coverage: Coverage) -> tuple[int, int]:
        turns = [
            turn for s in scripts for run in range(40) for turn in play(player, dice, s, "e", run, coverage)
        ]
        return sum(t.purpose == "give_up" for t in turns), sum(t.purpose == "detour" for t in turns)

    unguided, general, named = count(UNGUIDED), count(Coverage(True)), count(Coverage(True, frozenset(["x"])))
    assert general[0] == pytest.approx(0.4 * unguided[0], rel=0.25)
    assert general[1] < 0.6 * unguided[1]
    assert named == unguided


def test_a_detour_repeats_an_earlier_read_and_changes_no_outcome(
    behaviour: Settings, faults: Settings, scripts: list[TaskScript]
) -> None:
    player = Player(RehearsalBehaviour(**behaviour(detour=1.0)))
    dice = FaultDice("m", RehearsalFaults(**faults(garbled_arguments=0.3)))
    for script in scripts:
        turns = play(player, dice, script, "e", 0)
        assert turns[-1].text == script.answer
        for at, turn in enumerate(turns):
            if turn.purpose == "detour":
                assert turn.call is not None
                assert turn.call.reads
                assert turn.call in [before.call for before in turns[:at]]
    assert any(turn.purpose == "detour" for turn in play(player, dice, scripts[6], "e", 0))


def test_a_garbled_call_is_made_again_or_given_up(
    behaviour: Settings, faults: Settings, scripts: list[TaskScript]
) -> None:
    dice = FaultDice("m", RehearsalFaults(**faults(garbled_arguments=0.5)))
    patient = Player(RehearsalBehaviour(**behaviour(replan=0.0)))
    hasty = Player(RehearsalBehaviour(**behaviour(replan=1.0)))
    assert all(play(patient, dice, s, "e", run)[-1].text == s.answer for s in scripts for run in range(5))
    ends = {play(hasty, dice, script, "e", run)[-1].purpose for script in scripts for run in range(5)}
    assert ends == {"answer", "give_up"}
