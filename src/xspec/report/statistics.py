"""What the analysis says of an arm and of a group of arms, as the report carries it."""

from collections.abc import Mapping
from dataclasses import dataclass

from xspec.analysis.aa import AA, RunNoise
from xspec.analysis.arm import ArmFigures
from xspec.analysis.attribution import Attribution
from xspec.analysis.chains import Divergence
from xspec.analysis.compare import Comparison
from xspec.analysis.factorial import FactorialEffect
from xspec.analysis.goal_completion import GoalCompletion
from xspec.analysis.invalid_share import InvalidShare
from xspec.analysis.outliers import RunReview
from xspec.analysis.trajectory import Level
from xspec.report.failures import CauseCount


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """Counts that must agree. The ledger is None where the steps were not read.

    `idle_passes` counts passes of trials that never called a tool: where those pass, nothing is measured.
    """

    trials_expected: int
    trials_counted: int
    calls: int
    ledger_calls: int | None
    attempts: int
    ledger_attempts: int | None
    idle_passes: int | None

    @property
    def agrees(self) -> bool:
        """Every pair that could be compared is equal."""
        return (
            self.trials_expected == self.trials_counted
            and self.ledger_calls in (None, self.calls)
            and self.ledger_attempts in (None, self.attempts)
        )


@dataclass(frozen=True, slots=True)
class GoalFigures:
    """Task and scenario goal completion over valid trials and with invalid as failed; `by_difficulty` of valid ones."""

    valid_only: GoalCompletion
    invalid_as_fail: GoalCompletion
    by_difficulty: Mapping[str, GoalCompletion]


@dataclass(frozen=True, slots=True)
class ArmStatistics:
    """Of the chosen execution. `groups` is by what divides the tasks (`stratum`, `difficulty`), then by value.

    `goals` is None where clusters have one task each: then there are no scenarios. `divergence` and `attribution` are
    empty where no step is known. `aa` has each other complete execution, by id.
    """

    estimates: ArmFigures
    groups: Mapping[str, Mapping[str, ArmFigures]]
    goals: GoalFigures | None
    noise: RunNoise
    review: RunReview
    failures: tuple[CauseCount, ...]
    reconciliation: Reconciliation
    divergence: Mapping[Level, Divergence]
    attribution: tuple[Attribution, ...]
    aa: Mapping[str, AA]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two arms, by spec id. `guide` and `route` say which factors differ; `leads_as_fail` that routes do."""

    a: str
    b: str
    guide: bool
    route: bool

    @property
    def leads_as_fail(self) -> bool:
        """Whether a trial turns invalid is an effect of the route, so that counts."""
        return self.route


@dataclass(frozen=True, slots=True)
class GroupStatistics:
    """`comparisons` and `effects` hold both ways of counting invalid trials; in `effects` the first factor is the
    guide, the second the route. `invalid` is in the order of `pairs`.
    """

    pairs: tuple[Pair, ...]
    comparisons: tuple[Comparison, ...]
    invalid: tuple[InvalidShare, ...]
    effects: tuple[FactorialEffect, ...]
    cells: tuple[str, str, str, str] | None
    margin_pp: float | None

    def leading(self, pair: Pair, metric: str) -> Comparison:
        """The comparison of a pair that counts invalid trials the way its factors want."""
        return next(
            c
            for c in self.comparisons
            if (c.a, c.b, c.metric, c.invalid_as_fail) == (pair.a, pair.b, metric, pair.leads_as_fail)
        )

    def effect(self, effect: str, metric: str, *, invalid_as_fail: bool) -> FactorialEffect | None:
        """One of the effects, None where there is no 2x2."""
        return next(
            (
                e
                for e in self.effects
                if (e.effect, e.metric, e.invalid_as_fail) == (effect, metric, invalid_as_fail)
            ),
            None,
        )
