"""One real trial, in a store of its own: does everything work together, and what does a trial cost?"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from xspec.counted import counted
from xspec.doctor.findings import Finding, note, ok, problem
from xspec.errors import UserError
from xspec.experiment.compile import Compiled
from xspec.experiment.execute import execute
from xspec.spec.bundle import bundle, unbundle
from xspec.spec.models import ExperimentSpec
from xspec.spec.store import Store


def one_trial(compiled: Compiled, store: Store, folder: Path) -> Iterator[Finding]:
    """Runs the spec's first task once. The user's store is read and not written."""
    spec = compiled.spec
    task = spec.benchmark.tasks[0]
    benchmark = spec.benchmark.model_copy(update={"tasks": (task,)})
    small = ExperimentSpec.model_validate_json(
        spec.model_copy(update={"benchmark": benchmark, "k": 1}).canonical()
    )
    own = Store(folder)
    unbundle(own, bundle(store, spec.id), "the spec")
    own.put_spec(small)
    _copy_cache(store, own)
    try:
        end = execute([replace(compiled, spec=small, command=())], own, anew=True, launcher="doctor")
    except UserError as error:
        yield problem("trial", str(error))
        return
    trials = end.arms[0].trials
    if not trials:
        yield problem("trial", str(end.stopped) if end.stopped else "it was interrupted")
        return
    trial = trials[0]
    if trial.outcome == "invalid":
        yield problem("trial", f"{task} came out invalid ({trial.cause}: {trial.detail or trial.ended})")
        return
    tokens = trial.prompt_tokens + trial.completion_tokens
    seconds = trial.ended_at - trial.started_at
    cost = f"{counted(trial.calls, 'call')}, {counted(trial.attempts, 'attempt')}, {tokens:,} tokens, {seconds:.1f} s"
    yield ok("trial", f"{task}: {trial.outcome} ({trial.cause or trial.ended}); {cost}")
    count = spec.k * len(spec.benchmark.tasks)
    yield note(
        "cost",
        f"the whole spec, {counted(len(spec.benchmark.tasks), 'task')} x {counted(spec.k, 'run')}, "
        "if every trial were like this one: "
        f"{counted(count * trial.calls, 'call')}, {_round(count * tokens)} tokens, "
        f"{_duration(count * seconds / compiled.workers)} with {counted(compiled.workers, 'worker')}",
    )
    if not tokens:
        yield note("cost", "the provider counts no tokens", "reports call them unknown", matters=True)


def _copy_cache(store: Store, own: Store) -> None:
    """What was worked out once need not be again."""
    for path in (store.path / "cache").glob("*-*"):
        digest = store.cached_digest(path.name)
        if digest is not None:
            own.put_blob(store.blob(digest))
            own.cache_digest(path.name, digest)


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{seconds / 60:.0f} min"


def _round(tokens: int) -> str:
    return f"{tokens / 1e6:.1f} million" if tokens >= 1e6 else f"{tokens:,}"
