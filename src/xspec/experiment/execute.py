"""Carrying out compiled arms: one scheduler for all of them, from taking up executions to the last trial."""

import asyncio
import contextlib
import signal
from collections.abc import Coroutine, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from xspec.errors import DiskFailed, RouteStopped, SpecDrift, WorkerError, XspecError
from xspec.experiment.arm_execution import ArmExecution, trial_inputs, trials_to_do
from xspec.experiment.compile import Compiled
from xspec.experiment.lock import key_fingerprints
from xspec.experiment.progress import ProgressDisplay
from xspec.experiment.resources import Resources
from xspec.experiment.schedule import order
from xspec.experiment.started import check_startable
from xspec.experiment.trial import ROUTE_CAUSE, TrialInput, TrialRunner
from xspec.records.executions import executions_of
from xspec.records.rows import Trial
from xspec.spec.played import played_agent
from xspec.spec.store import Store

ROUTE_INVALID_IN_A_ROW = 10
"""So many trials of an arm made invalid by the route, one after another, end the execution."""


@dataclass(slots=True)
class ArmEnd:
    """How one arm came out of a command. `trials` are all current trials of the execution, not this stint's alone."""

    compiled: Compiled
    execution_id: str
    trials: list[Trial]
    complete: bool
    already_finished: bool = False

    def exit_code(self) -> int:
        """0 done; 1 too many invalid trials; 3 trials are missing."""
        if not self.complete:
            return 3
        invalid = sum(trial.outcome == "invalid" for trial in self.trials)
        return (
            1
            if invalid == len(self.trials) or invalid > self.compiled.max_invalid_share * len(self.trials)
            else 0
        )


@dataclass(slots=True)
class SweepEnd:
    """How a command ended. `stopped` says why trials are missing: an error, or None if a person interrupted."""

    arms: list[ArmEnd] = field(default_factory=list)
    stopped: XspecError | None = None
    interrupted: bool = False

    def exit_code(self) -> int:
        """The exit code of the command: 130 after an interrupt, else the worst of the arms and the stop."""
        if self.interrupted:
            return 130
        if self.stopped is not None:
            return self.stopped.exit_code
        return max((arm.exit_code() for arm in self.arms), default=0)


@dataclass(slots=True)
class _Arm:
    execution: ArmExecution
    inputs: dict[str, TrialInput]
    runner: TrialRunner
    route_invalid: int = 0


def execute(
    compiled: Sequence[Compiled], store: Store, *, anew: bool = False, launcher: str = "basic"
) -> SweepEnd:
    """Executes or continues every arm, interleaved. Raises UserError before anything is sent; stops are in the result.

    An arm whose executions are all finished is not executed again unless `anew`.
    """
    distinct = list({arm.spec.id: arm for arm in compiled}.values())
    for arm in distinct:
        played_agent(arm.spec)
    end = SweepEnd()
    to_do: list[Compiled] = []
    for arm in distinct:
        finished = None if anew else finished_execution(store, arm)
        if finished is not None:
            end.arms.append(finished)
        else:
            key_fingerprints(arm.spec)  # a missing key or model is told before anything is begun
            check_startable(arm.spec)
            to_do.append(arm)
    with contextlib.ExitStack() as stack:
        executions: list[ArmExecution] = []
        for arm in to_do:
            executions.append(ArmExecution.take_up(store, arm, anew=anew))
            stack.callback(executions[-1].close)
        if executions:
            try:
                asyncio.run(_carry_out(executions, store, launcher))
            except (KeyboardInterrupt, asyncio.CancelledError):
                end.interrupted = True
            except (RouteStopped, SpecDrift, DiskFailed, WorkerError) as error:
                end.stopped = error
        end.arms.extend(_end_of(execution) for execution in executions)
    return end


def finished_execution(store: Store, compiled: Compiled) -> ArmEnd | None:
    """The first execution of the spec, if it has any and there is nothing left to do in one of them."""
    ends = []
    for folder in executions_of(store, compiled.spec.id):
        progress = folder.progress()
        if trials_to_do(compiled, progress):
            return None
        trials = list(progress.trials.values())
        ends.append(ArmEnd(compiled, folder.info.execution_id, trials, complete=True, already_finished=True))
    return ends[0] if ends else None


def newest_execution(store: Store, compiled: Compiled) -> ArmEnd | None:
    """How the newest execution of the spec stands, whoever carried it out."""
    for folder in reversed(executions_of(store, compiled.spec.id)):
        trials = list(folder.progress().trials.values())
        complete = len(trials) == compiled.spec.k * len(compiled.spec.benchmark.tasks)
        return ArmEnd(compiled, folder.info.execution_id, trials, complete)
    return None


def _end_of(execution: ArmExecution) -> ArmEnd:
    trials = list(execution.trials.values())
    complete = len(trials) == execution.spec.k * len(execution.spec.benchmark.tasks)
    return ArmEnd(execution.compiled, execution.info.execution_id, trials, complete)


async def _carry_out(executions: Sequence[ArmExecution], store: Store, launcher: str) -> None:
    workers = max(execution.compiled.workers for execution in executions)
    me = asyncio.current_task()
    assert me is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, me.cancel)
    async with Resources(store, executions, workers) as resources:
        for execution in executions:
            execution.check_lock(
                workers=execution.compiled.workers,
                launcher=launcher,
                worker_package=resources.worker_package(execution.spec),
                bindings=resources.addresses(execution.spec),
            )
        arms = []
        for execution in executions:
            pool = resources.pool(execution.spec)
            route = resources.route(execution)
            runner = TrialRunner(
                played_agent(execution.spec),
                route,
                pool,
                execution.record_step,
                execution.tally,
                execution.folder.begin_world_folder,
            )
            arms.append(_Arm(execution, trial_inputs(store, execution.spec), runner))
        for execution in executions:  # only now, when nothing of any arm can be wrong any more
            execution.begin_stint(pacing_alone=resources.pacing_alone)
        places = order((arm.execution.spec.id, arm, arm.execution.to_do()) for arm in arms)
        total = sum(arm.execution.spec.k * len(arm.inputs) for arm in arms)
        with ProgressDisplay(total, total - len(places), quiet=launcher != "basic") as display:
            await _run_all(iter(places), min(workers, len(places)), display, resources.wait_crashed())


async def _run_all(
    places: Iterator[tuple[_Arm, int, str]],
    workers: int,
    display: ProgressDisplay,
    crash: Coroutine[Any, Any, None],
) -> None:
    """`workers` trials at once until the places are used up. The first stop cancels the others, which stay missing.

    `crash` raises when something that all trials need has ended.
    """

    async def work() -> None:
        for arm, run, task in places:
            await _run_one(arm, run, task, display)

    tasks = [asyncio.create_task(work()) for _ in range(workers)]
    trials, crashed = asyncio.gather(*tasks), asyncio.create_task(crash)
    try:
        await asyncio.wait((trials, crashed), return_when=asyncio.FIRST_COMPLETED)
        if not trials.done():
            await crashed
        await trials
    finally:
        for task in (*tasks, crashed):
            task.cancel()
        await asyncio.gather(trials, crashed, *tasks, return_exceptions=True)


async def _run_one(arm: _Arm, run: int, task: str, display: ProgressDisplay) -> None:
    execution = arm.execution
    trial, again = await arm.runner.run(arm.inputs[task], run, execution.next_take(run, task))
    execution.record_trial(trial)
    if again:
        trial, _ = await arm.runner.run(arm.inputs[task], run, execution.next_take(run, task))
        execution.record_trial(trial)
    display.ended(trial)
    by_route = trial.outcome == "invalid" and (trial.cause or "").startswith(ROUTE_CAUSE)
    arm.route_invalid = arm.route_invalid + 1 if by_route else 0
    if arm.route_invalid >= ROUTE_INVALID_IN_A_ROW:
        cause = (trial.cause or "").removeprefix(ROUTE_CAUSE)
        raise RouteStopped(
            "ten_invalid",
            f"{ROUTE_INVALID_IN_A_ROW} trials in a row could not be served ({cause}: {trial.detail})",
            "look at the provider, then go on with the same command and --retry-invalid",
        )
