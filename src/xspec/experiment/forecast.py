"""What a command will take: its trials, and by an estimate of one trial its calls and tokens."""

from collections.abc import Sequence
from dataclasses import dataclass

from xspec.analysis.plan import Usage
from xspec.experiment.arm_execution import newest_unfinished, trials_to_do
from xspec.experiment.compile import Compiled
from xspec.experiment.execute import finished_execution
from xspec.records.executions import executions_of
from xspec.spec.models import ExperimentSpec
from xspec.spec.store import Store


@dataclass(frozen=True, slots=True)
class Forecast:
    """`usage` is that of one trial, retries left out, None if nothing is known of it; `basis` says where it is from."""

    trials: int
    usage: Usage | None
    basis: str


def trials_left(store: Store, compiled: Compiled) -> int:
    """How many trials executing the arm would carry out."""
    if finished_execution(store, compiled) is not None:
        return 0
    folder = newest_unfinished(store, compiled)
    if folder is None:
        return compiled.spec.k * len(compiled.spec.benchmark.tasks)
    return len(trials_to_do(compiled, folder.progress()))


def forecast(store: Store, arms: Sequence[Compiled]) -> Forecast:
    """The cost of executing or continuing these arms, all of them alike.

    A trial is taken to be like the stored ones of the same benchmark, agent and models, else as the configuration
    assumes. Stored ones are few where only a first try was made, and tell nothing of tasks it left out.
    """
    distinct = {arm.spec.id: arm for arm in arms}.values()
    trials = sum(trials_left(store, arm) for arm in distinct)
    usage, count = _measured(store, arms[0].spec)
    if usage is not None:
        return Forecast(trials, usage, f"the mean of {count} stored trials like these")
    assumed = arms[0].trial_estimate
    if assumed is None:
        return Forecast(trials, None, "none like these is stored; try benchmark.limit=5 k=1 first")
    usage = Usage(assumed.calls, assumed.prompt_tokens, assumed.completion_tokens)
    return Forecast(trials, usage, assumed.basis)


def _measured(store: Store, spec: ExperimentSpec) -> tuple[Usage | None, int]:
    trials = [
        trial
        for folder in executions_of(store)
        if _alike(store.spec(folder.info.spec_id), spec)
        for trial in folder.progress().trials.values()
        if trial.outcome != "invalid" and trial.prompt_tokens
    ]
    if not trials:
        return None, 0
    usage = Usage.of_trials(
        [t.calls for t in trials], [t.prompt_tokens for t in trials], [t.completion_tokens for t in trials]
    )
    return usage, len(trials)


def _alike(one: ExperimentSpec, other: ExperimentSpec) -> bool:
    """Whether a trial of one says what a trial of the other takes."""
    models = [{(m.kind, m.model) for m in spec.route.members} for spec in (one, other)]
    return one.benchmark.kind == other.benchmark.kind and one.agent == other.agent and models[0] == models[1]
