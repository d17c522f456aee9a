"""What the report needs to know about one execution. The store fills it in; the report reads nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xspec.analysis.consistency import OutcomeCode
from xspec.errors import StoreError
from xspec.records.rows import Outcome, Trial
from xspec.route.verification import Verification
from xspec.spec.models import ExperimentSpec

DRIFT = "drift"
"""The cause of trials that are invalid because of what their replies came from."""

_CODES = {"pass": OutcomeCode.PASS, "fail": OutcomeCode.FAIL, "invalid": OutcomeCode.INVALID}


@dataclass(frozen=True, slots=True)
class ExecutionRecord:
    """One execution of a spec, with the current row of each trial that has one.

    `started_at` and `ended_at` are seconds since the epoch; `ended_at` is None while trials are missing.
    `superseded` counts trial rows replaced by a later take, `abandoned_attempts` attempts whose trial never
    got a row because the process was killed, and `tokens_outside_trials` the tokens of both: they cost, but
    are no retry. `continue_with` is the command line that continues the execution, None if it isn't known.
    `lock_changes` says what later stints found different from the first one's lock and the user accepted,
    `verifications` what the replies prove about their origin, and `replayed` is (identical, all) of a replay
    of its trials, None if there was none.
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
    verifications: Sequence[Verification] = ()
    replayed: tuple[int, int] | None = None

    def outcomes(self, *, drift_counts: bool = False) -> NDArray[np.int64]:
        """Outcome codes, runs by tasks in the spec's order.

        With `drift_counts` trials that only drift made invalid have the outcome they would have had without it.

        Raises StoreError when a trial is not one of the spec's, or has two current rows.
        """
        column = {task: i for i, task in enumerate(self.spec.benchmark.tasks)}
        table = np.full((self.spec.k, len(column)), OutcomeCode.MISSING, dtype=np.int64)
        for trial in self.trials:
            where = f"execution {self.execution_id}: run {trial.run} of task {trial.task}"
            if trial.task not in column or not 0 <= trial.run < self.spec.k:
                raise StoreError(f"{where} is no trial of {self.spec_id}")
            place = trial.run, column[trial.task]
            if table[place] != OutcomeCode.MISSING:
                raise StoreError(f"{where} has two current rows; one of them should be superseded")
            table[place] = _CODES[_without_drift(trial) if drift_counts else trial.outcome]
        return table


def _without_drift(trial: Trial) -> Outcome:
    """What a drift-invalid trial would have been. Only one that ended without an answer has no verdict: a fail."""
    if trial.cause != DRIFT:
        return trial.outcome
    return "pass" if trial.verdict is not None and trial.verdict.get("passed") else "fail"
