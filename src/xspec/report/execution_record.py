"""What the report needs to know about one execution. The store fills it in; the report reads nothing else."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xspec.analysis.consistency import OutcomeCode
from xspec.errors import StoreError
from xspec.records.rows import Outcome, Trial
from xspec.report.steps import ExecutionSteps
from xspec.route.verification import Verification
from xspec.spec.models import ExperimentSpec

DRIFT = "drift"
"""The cause of trials that are invalid because of what their replies came from."""

# Plain integers: a store may hold a hundred thousand trials, and an enum's members are slow to look up.
_CODES = {"pass": int(OutcomeCode.PASS), "fail": int(OutcomeCode.FAIL), "invalid": int(OutcomeCode.INVALID)}
_MISSING = int(OutcomeCode.MISSING)


@dataclass(frozen=True, slots=True)
class ExecutionRecord:
    """One execution of a spec, with the current row of each trial that has one.

    `started_at` and `ended_at` are seconds since the epoch; `ended_at` is None while trials are missing.
    `superseded` counts trial rows replaced by a later take, `abandoned_attempts` attempts whose trial never
    got a row because the process was killed, and `tokens_outside_trials` the tokens of both: they cost, but
    are no retry. `continue_with` is the command line that continues the execution, None if it isn't known.
    `replies` are usable ones, `uncounted` those that did not say how many tokens they took.
    `lock_changes` says what later stints found different from the first one's lock and the user accepted,
    `lock_notes` what else is to be said of the locks, `verifications` what the replies prove about their
    origin, and `replayed` is (identical, all) of a replay of its trials, None if there was none. `task_info` has
    cluster, stratum, difficulty and instruction by task, `locks` one entry a stint, `steps` what the trials did,
    None where it was not read, `guide` the stored guide.
    """

    execution_id: str
    spec: ExperimentSpec
    spec_id: str
    condition_id: str
    arm: str | None
    started_at: float
    ended_at: float | None
    trials: Sequence[Trial]
    superseded: int = 0
    abandoned_attempts: int = 0
    tokens_outside_trials: int = 0
    continue_with: str | None = None
    lock_changes: Sequence[str] = ()
    lock_notes: Sequence[str] = ()
    replies: int = 0
    uncounted: int = 0
    verifications: Sequence[Verification] = ()
    replayed: tuple[int, int] | None = None
    task_info: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    locks: Sequence[Mapping[str, Any]] = ()
    steps: ExecutionSteps | None = None
    guide: Mapping[str, Any] | None = None

    @property
    def tokens_unknown(self) -> bool:
        """Whether there are replies, and none of them said how many tokens it took."""
        return 0 < self.replies == self.uncounted

    def outcomes(self, *, drift_counts: bool = False) -> NDArray[np.int64]:
        """Outcome codes, runs by tasks in the spec's order.

        With `drift_counts` trials that only drift made invalid have the outcome they would have had without it.

        Raises StoreError when a trial is not one of the spec's, or has two current rows.
        """
        column = {task: i for i, task in enumerate(self.spec.benchmark.tasks)}
        runs = range(self.spec.k)
        table = [[_MISSING] * len(column) for _ in runs]
        for trial in self.trials:
            place = column.get(trial.task)
            if place is None or trial.run not in runs:
                raise StoreError(f"{self._place(trial)} is no trial of {self.spec_id}")
            if table[trial.run][place] != _MISSING:
                raise StoreError(
                    f"{self._place(trial)} has two current rows; one of them should be superseded"
                )
            table[trial.run][place] = _CODES[_without_drift(trial) if drift_counts else trial.outcome]
        return np.array(table, dtype=np.int64).reshape(len(runs), len(column))

    def _place(self, trial: Trial) -> str:
        return f"execution {self.execution_id}: run {trial.run} of task {trial.task}"


def chosen_of(executions: Sequence[ExecutionRecord]) -> int:
    """Which of a spec's executions, oldest first, has the spec's figures: the first finished one, else the newest."""
    finished = (i for i, record in enumerate(executions) if record.ended_at is not None)
    return next(finished, len(executions) - 1)


def _without_drift(trial: Trial) -> Outcome:
    """What a drift-invalid trial would have been. Only one that ended without an answer has no verdict: a fail."""
    if trial.cause != DRIFT:
        return trial.outcome
    return "pass" if trial.verdict is not None and trial.verdict.get("passed") else "fail"
