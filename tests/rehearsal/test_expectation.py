"""The simulated model must score what the formulas say, within Monte-Carlo error, under fixed seeds."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from scipy.special import beta as beta_function

from xspec.rehearsal.behaviour import Player
from xspec.rehearsal.code import Block, as_reply
from xspec.rehearsal.draws import pick
from xspec.rehearsal.expectation import (
    Expectation,
    Rehearsal,
    beta_quadrature,
    invalid_chance,
)
from xspec.rehearsal.faults import FaultDice, Place
from xspec.rehearsal.guide import UNGUIDED, Coverage
from xspec.rehearsal.scripts import TaskScript
from xspec.spec.members import RehearsalBehaviour, RehearsalFaults

Settings = Callable[..., dict[str, Any]]
K = 5
NAMED = Coverage(True, frozenset({"send_money", "get_balance"}))


def passes(
    player: Player, dice: list[FaultDice], script: TaskScript, execution: str, run: int, coverage: Coverage
) -> bool:
    """Play a trial without HTTP; each call is served by a member drawn anew."""
    messages: list[Any] = []
    for step in range(300):
        turn = player.turn(script, messages, execution, run, coverage)
        if turn.call is None or turn.purpose == "give_up":
            return turn.purpose == "answer"
        place = Place(execution, run, script.task, step, 0)
        served = dice[pick(len(dice), "route", execution, run, script.task, step)]
        if isinstance(turn.call, Block):
            code = served.code(turn.call.text, place)
            messages.append({"role": "assistant", "content": as_reply(code)})
            continue
        function = {"name": turn.call.name, "arguments": served.arguments(turn.call.text, place)}
        messages.append({"role": "assistant", "tool_calls": [{"function": function}]})
    raise AssertionError("the trial does not end")


def simulate(rehearsal: Rehearsal, executions: int, *, redraw: bool) -> np.ndarray[Any, Any]:
    """Mean@k, Pass^k and Pass@k (percent) of each simulated execution."""
    dice = [FaultDice(f"m{i}", faults) for i, faults in enumerate(rehearsal.members)]
    player, rows = Player(rehearsal.behaviour), []
    for number in range(executions):
        if redraw:
            player = Player(rehearsal.behaviour.model_copy(update={"difficulty_seed": number}))
        c = np.array(
            [
                sum(
                    passes(
                        player, dice, script, f"e{number}", run, rehearsal.coverage.get(script.task, UNGUIDED)
                    )
                    for run in range(K)
                )
                for script in rehearsal.tasks
            ]
        )
        rows.append([100 * np.mean(c / K), 100 * np.mean(c == K), 100 * np.mean(c > 0)])
    return np.array(rows)


def agree(expected: Expectation, rows: np.ndarray[Any, Any]) -> None:
    error = rows.std(axis=0, ddof=1) / np.sqrt(len(rows))
    truth = np.array([expected.mean_at_k, expected.pass_hat_k, expected.pass_at_k])
    assert np.all(np.abs(rows.mean(axis=0) - truth) < 3.5 * error + 1e-9), (rows.mean(axis=0), truth, error)


@pytest.mark.parametrize("coverage", [UNGUIDED, Coverage(True), NAMED], ids=["none", "general", "named"])
@pytest.mark.parametrize("garbles", [[0.05], [0.02, 0.2]], ids=["fixed", "floating"])
@pytest.mark.parametrize("redraw", [False, True], ids=["fixed-tasks", "redrawn"])
def test_simulated_trials_score_as_expected(
    behaviour: Settings,
    faults: Settings,
    scripts: list[TaskScript],
    coverage: Coverage,
    garbles: list[float],
    redraw: bool,
) -> None:
    rehearsal = Rehearsal(
        RehearsalBehaviour(
            **behaviour(unstable_tasks=0.5, hopeless_tasks=0.1, detour=0.3, replan=0.4, guide_effect=0.6)
        ),
        [RehearsalFaults(**faults(garbled_arguments=garble)) for garble in garbles],
        scripts,
        {script.task: coverage for script in scripts},
    )
    expected = rehearsal.redrawn(K) if redraw else rehearsal.fixed(K)
    agree(expected, simulate(rehearsal, 25 if not redraw else 40, redraw=redraw))
    assert expected.gap_pp == expected.mean_at_k - expected.pass_hat_k


@pytest.mark.parametrize("coverage", [UNGUIDED, Coverage(True), Coverage(True, frozenset({"send_money"}))])
def test_simulated_trials_by_code_score_as_expected(
    behaviour: Settings, faults: Settings, code_scripts: list[TaskScript], coverage: Coverage
) -> None:
    rehearsal = Rehearsal(
        RehearsalBehaviour(
            **behaviour(unstable_tasks=0.5, hopeless_tasks=0.1, detour=0.3, replan=0.4, guide_effect=0.6)
        ),
        [RehearsalFaults(**faults(garbled_arguments=0.1))],
        code_scripts,
        {script.task: coverage for script in code_scripts},
    )
    agree(rehearsal.fixed(K), simulate(rehearsal, 25, redraw=False))


def test_quadrature_gives_the_moments_of_the_beta() -> None:
    for alpha, beta in ((0.3, 0.7), (5.0, 11.0), (1.0, 1.0), (0.02, 0.5), (120.0, 900.0)):
        q, weights = beta_quadrature(alpha, beta, 5)
        for power in range(6):
            exact = beta_function(alpha, beta + power) / beta_function(alpha, beta)
            assert weights @ (1 - q) ** power == pytest.approx(exact, rel=1e-9)


def test_only_garbles_matter_on_stable_tasks(behaviour: Settings, faults: Settings) -> None:
    calls = [{"name": "send_money", "arguments": {"n": n}} for n in range(3)]
    plain: Mapping[str, Any] = {"instruction": "", "calls": calls, "answer": "", "commit": 1}
    tasks = [TaskScript.of("t", plain)]
    members = [RehearsalFaults(**faults(garbled_arguments=0.1))]
    rehearsal = Rehearsal(RehearsalBehaviour(**behaviour(replan=0.5)), members, tasks, {})
    once = 0.9 / (1 - 0.1 * 0.5)
    for expected in (rehearsal.fixed(2), rehearsal.redrawn(2)):
        assert expected.mean_at_k == pytest.approx(100 * once**2)
        assert expected.pass_hat_k == pytest.approx(100 * once**4)
        assert expected.pass_at_k == pytest.approx(100 * (1 - (1 - once**2) ** 2))


def test_members_that_fail_more_answer_fewer_attempts(behaviour: Settings, faults: Settings) -> None:
    good = RehearsalFaults(**faults(garbled_arguments=0.0))
    bad = RehearsalFaults(**faults(garbled_arguments=0.3, server_error=0.5))
    settings = RehearsalBehaviour(**behaviour())
    assert Rehearsal(settings, [good, bad], [], {}).garble_chance() == pytest.approx(0.15)
    assert Rehearsal(settings, [good, bad], [], {}, "attempt").garble_chance() == pytest.approx(0.1)


def test_invalid_chance(faults: Settings) -> None:
    broken = RehearsalFaults(**faults(server_error=0.1, too_many_requests=0.5))
    assert invalid_chance(broken, 1, 3) == pytest.approx(0.2**3)
    assert invalid_chance(RehearsalFaults(**faults(other_model=0.01)), 2, 3) == pytest.approx(1 - 0.99**2)
    assert invalid_chance(RehearsalFaults(**faults(too_many_requests=1.0)), 2, 3) == 1.0


def test_no_tasks_no_expectation(behaviour: Settings, faults: Settings) -> None:
    empty = Rehearsal(RehearsalBehaviour(**behaviour()), [RehearsalFaults(**faults())], [], {})
    with pytest.raises(ValueError, match="at least one task"):
        empty.redrawn(5)
