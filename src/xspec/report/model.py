"""What a report says, as plain data. `build` makes it; the table and the JSON show it."""

from dataclasses import dataclass
from typing import Literal

from xspec.analysis.consistency import Consistency
from xspec.guides.scope import GuideScope
from xspec.report.execution_record import ExecutionRecord
from xspec.report.gateway import GatewayFigures
from xspec.report.statistics import ArmStatistics, GroupStatistics
from xspec.route.verification import Verification
from xspec.spec.diff import FieldDiff

SCHEMA = 2
"""Version of the JSON form. Raised when a field goes away or changes its meaning, not when one is added."""


@dataclass(frozen=True, slots=True)
class ExecutionFigures:
    """One execution and its figures. `chosen` marks the one whose figures are the arm's.

    Times are seconds since the epoch and span the trials themselves where there are any. `with_drift` are the
    figures with drift-invalidated trials counted by their verdicts; None if there are none. `total_tokens` is None
    if no reply said how many it took; `uncounted` of the usable `replies` did not.
    """

    execution_id: str
    chosen: bool
    started_at: float
    ended_at: float | None
    figures: Consistency
    incomplete_tasks: tuple[str, ...]
    invalid_causes: tuple[tuple[str, int], ...]
    retry_count: int
    total_tokens: int | None
    superseded: int
    abandoned_attempts: int
    continue_with: str | None
    lock_changes: tuple[str, ...]
    with_drift: Consistency | None = None
    verifications: tuple[Verification, ...] = ()
    replayed: tuple[int, int] | None = None
    lock_notes: tuple[str, ...] = ()
    replies: int = 0
    uncounted: int = 0

    @property
    def finished(self) -> bool:
        """Every trial has an outcome, be it invalid."""
        return self.figures.trials.missing == 0


@dataclass(frozen=True, slots=True)
class Arm:
    """One spec. `label` is the arm's name, or the levels of its factors; it identifies nothing.

    `record` and `statistics` are of the chosen execution. `scope` is None without a guide.
    """

    label: str
    spec_id: str
    condition_id: str
    group: int
    guided: bool
    scope: GuideScope | None
    mode: Literal["fixed", "floating"]
    simulated: bool
    executions: tuple[ExecutionFigures, ...]
    record: ExecutionRecord
    statistics: ArmStatistics

    @property
    def chosen(self) -> ExecutionFigures:
        """The first finished execution, else the newest."""
        return next(execution for execution in self.executions if execution.chosen)


@dataclass(frozen=True, slots=True)
class Group:
    """Arms of one comparison: any two differ in factors alone and share a member.

    Only on request they differ in more: then `differences` lists it, by the spec ids of each pair. `texts_left_out`
    says that protected texts were taken out (see xspec.report.protection).
    """

    index: int
    benchmark: str
    version: str
    split: str
    tasks: tuple[str, ...]
    k: int
    agent: str
    models: tuple[str, ...]
    arms: tuple[Arm, ...]
    statistics: GroupStatistics
    differences: tuple[tuple[str, str, tuple[FieldDiff, ...]], ...] = ()
    texts_left_out: bool = False

    @property
    def simulated(self) -> bool:
        return any(arm.simulated for arm in self.arms)


@dataclass(frozen=True, slots=True)
class Report:
    """All that is stored, in groups of comparable specs, the longest known first; and what came through gateways."""

    groups: tuple[Group, ...]
    gateways: tuple[GatewayFigures, ...] = ()

    @property
    def simulated(self) -> bool:
        return any(g.simulated for g in self.groups) or any(g.simulated for g in self.gateways)

    @property
    def empty(self) -> bool:
        return not self.groups and not self.gateways
