"""What a rehearsal should measure: exact expectations of its own figures.

The chance p that a trial passes is, over the call indices of the task's solution,

    p = (1 - flip chance) * product of S(point) * (1 - detour + detour * S(point))

where S is the chance that a call (a tool call or a block of code), once decided on, gets made without the model
giving up over a garbled one. With g the chance of a garble and r that of giving up after one, S = (1-g) + g(1-r)S, so
S = (1-g) / (1-g(1-r)); after the commit point the model never gives up, and S = 1.

Left out: trials that turn invalid (retries exhausted, drift), and the agent's step limit. Both are rare under
the default settings; `invalid_chance` says how rare.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from xspec.rehearsal.behaviour import Player
from xspec.rehearsal.difficulty import Difficulty
from xspec.rehearsal.guide import UNGUIDED, Coverage
from xspec.rehearsal.scripts import TaskScript
from xspec.spec.members import RehearsalBehaviour, RehearsalFaults


@dataclass(frozen=True, slots=True)
class Expectation:
    """Expected figures in percent; the gap in percentage points."""

    k: int
    mean_at_k: float
    pass_hat_k: float
    pass_at_k: float

    @property
    def gap_pp(self) -> float:
        """Mean@k minus Pass^k."""
        return self.mean_at_k - self.pass_hat_k


@dataclass(frozen=True)
class Rehearsal:
    """One arm: how the model errs, the members that serve it, and the guide's coverage by task.

    A fixed route has one member; of several, each call (or attempt) draws one uniformly. A task without an
    entry in `coverage` has no guide.
    """

    behaviour: RehearsalBehaviour
    members: Sequence[RehearsalFaults]
    tasks: Sequence[TaskScript]
    coverage: Mapping[str, Coverage]
    granularity: Literal["call", "attempt"] = "call"

    def fixed(self, k: int) -> Expectation:
        """The expectation for these very tasks with the difficulties that the seed gave them."""
        player = Player(self.behaviour)
        chances = [self.pass_chance(script, player.difficulty(script)) for script in self.tasks]
        p = np.array(chances, dtype=np.float64)
        return _expectation(k, [(np.ones(1), p[:, None])])

    def redrawn(self, k: int) -> Expectation:
        """The expectation over difficulties: what many difficulty seeds average to.

        Exact up to rounding: every figure is a polynomial in the Beta-distributed flip chance, of degree at
        most k, which Gauss-Jacobi quadrature integrates exactly.
        """
        unstable, hopeless = self.behaviour.unstable_tasks, self.behaviour.hopeless_tasks
        nodes, weights = beta_quadrature(self.behaviour.flip_alpha, self.behaviour.flip_beta, k)
        parts = []
        for script in self.tasks:
            smooth = self._smooth_chance(script)
            if not script.points:
                parts.append((np.ones(1), np.array([[smooth]])))
                continue
            point_weights = np.concatenate(
                [
                    [1 - unstable - hopeless],
                    [hopeless],
                    np.tile(unstable * weights, script.points) / script.points,
                ]
            )
            flips = [self._flip_factor(script, point) * nodes for point in range(script.points)]
            parts.append((point_weights, smooth * (1 - np.concatenate([[0.0], [1.0], *flips]))[None, :]))
        return _expectation(k, parts)

    def pass_chance(self, script: TaskScript, difficulty: Difficulty) -> float:
        """The chance that a trial of the task passes."""
        if difficulty.point is None:
            return self._smooth_chance(script)
        covered = self._coverage(script).covers(script.names_at(difficulty.point))
        flip = difficulty.flip_chance(covered, self.behaviour.guide_effect)
        return (1 - flip) * self._smooth_chance(script)

    def garble_chance(self) -> float:
        """The chance that an answered call is garbled, over the members that may have answered it."""
        garbles = np.array([faults.garbled_arguments for faults in self.members])
        if self.granularity == "call":
            return float(garbles.mean())
        # Drawn anew at every attempt, a member answers in proportion to how often it is not at fault.
        answers = np.array([1 - refused_chance(faults) - faults.too_many_requests for faults in self.members])
        return float(garbles @ answers / answers.sum())

    def _smooth_chance(self, script: TaskScript) -> float:
        """The chance to pass if the trial does not flip."""
        player, coverage = Player(self.behaviour), self._coverage(script)
        garble, replan, chance = self.garble_chance(), self.behaviour.replan, 1.0
        for point in range(min(script.points, len(script.calls))):
            stays = 1 - garble * (1 - replan)
            survives = (1 - garble) / stays if stays else 0.0
            detour = player.detour_chance(script, point, coverage)
            chance *= survives * (1 - detour + detour * survives)
        return chance

    def _flip_factor(self, script: TaskScript, point: int) -> float:
        covered = self._coverage(script).covers(script.names_at(point))
        return 1 - self.behaviour.guide_effect if covered else 1.0

    def _coverage(self, script: TaskScript) -> Coverage:
        return self.coverage.get(script.task, UNGUIDED)


def refused_chance(faults: RehearsalFaults) -> float:
    """The chance that an attempt fails in a way that uses up one of the retry policy's attempts."""
    return faults.server_error + faults.stall + faults.reset + faults.truncated_json


def invalid_chance(faults: RehearsalFaults, calls: float, max_attempts: int) -> float:
    """The chance that a trial of so many calls on one member turns invalid.

    Either a call exhausts its attempts (a 429 is waited out and uses none), or another model answers.
    """
    counted = 1 - faults.too_many_requests
    if counted <= 0:
        return 1.0
    refused, drifted = refused_chance(faults) / counted, faults.other_model / counted
    tries = sum(refused**n for n in range(max_attempts))
    return float(1 - (1 - refused**max_attempts - drifted * tries) ** calls)


def beta_quadrature(
    alpha: float, beta: float, degree: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Nodes in [0, 1] and weights that integrate polynomials up to `degree` exactly over the Beta."""
    # Golub and Welsch: eigenvalues and vectors of the Jacobi matrix of x^(alpha-1) (1-x)^(beta-1).
    # SciPy's roots_jacobi overflows for large parameters and divides by zero where alpha + beta is 1.
    a, b = beta - 1, alpha - 1
    n = np.arange(1, degree // 2 + 1)
    middle = 2 * n + a + b
    diagonal = np.concatenate([[(b - a) / (a + b + 2)], (b - a) * (b + a) / (middle * (middle + 2))])
    last = np.where(n == 1, 1.0, (n + a + b) / np.where(n == 1, 1.0, middle - 1))
    beside = np.sqrt(4 * n * (n + a) * (n + b) * last / (middle**2 * (middle + 1)))
    x, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(beside, -1))
    return (1 + x) / 2, vectors[0] ** 2


def _expectation(k: int, parts: Iterable[tuple[NDArray[np.float64], NDArray[np.float64]]]) -> Expectation:
    """From (weights, tasks by pass chances) parts: weighted over columns, averaged over rows."""
    mean, always, ever, tasks = 0.0, 0.0, 0.0, 0
    for weights, p in parts:
        mean += float((p @ weights).sum())
        always += float((p**k @ weights).sum())
        ever += float(((1 - (1 - p) ** k) @ weights).sum())
        tasks += len(p)
    if not tasks:
        raise ValueError("an expectation needs at least one task")
    return Expectation(k, 100 * mean / tasks, 100 * always / tasks, 100 * ever / tasks)
