"""One arm's execution: begun anew or taken up where it was, with its lease, journal and lock held for this stint."""

import contextlib
from collections.abc import Iterable, Mapping
from typing import Any

from xspec.agents import AGENTS
from xspec.agents.offer import Offer
from xspec.errors import SpecError
from xspec.experiment.compile import Compiled
from xspec.experiment.lease import Lease
from xspec.experiment.lock import make_lock, refuse_change, write_lock
from xspec.experiment.trial import WORKER_CAUSE, Tally, TrialInput
from xspec.guides.rules import system_text
from xspec.records.executions import ExecutionFolder, Progress, executions_of
from xspec.records.journal import Journal
from xspec.records.rows import AttemptEnded, AttemptStarted, Call, Closed, Place, Row, Step, Trial
from xspec.route.conversation import Pins, text_digest
from xspec.spec.models import ExperimentSpec
from xspec.spec.played import played_agent
from xspec.spec.store import Store


def trials_to_do(compiled: Compiled, progress: Progress) -> list[tuple[int, str]]:
    """The (run, task) of the spec that have no trial yet, or an invalid one that is to be run again.

    Invalid trials are if the user wants it, and once if a broken worker made them so: a process that was killed
    before it came to that still owes it.
    """

    def is_to_do(place: tuple[int, str]) -> bool:
        trial = progress.trials.get(place)
        if trial is None:
            return True
        owed = trial.cause == WORKER_CAUSE and progress.rows[place] == 1
        return trial.outcome == "invalid" and (compiled.retry_invalid or owed)

    spec = compiled.spec
    places = ((run, task) for run in range(spec.k) for task in spec.benchmark.tasks)
    return [place for place in places if is_to_do(place)]


class ArmExecution:
    """Everything one arm needs while its trials run. Built by `take_up`; use as a context manager."""

    def __init__(self, store: Store, compiled: Compiled, folder: ExecutionFolder, lease: Lease) -> None:
        self.store = store
        self.compiled = compiled
        self.spec = compiled.spec
        self.folder = folder
        self.info = folder.info
        self.progress = folder.progress()
        self.stint = max(folder.stints(), default=0) + 1
        self.references: dict[str, dict[str, str]] = {}
        self.lock: dict[str, Any] = {}
        self.trials = dict(self.progress.trials)
        self._lease = lease
        self._journal: Journal | None = None
        self._tallies: dict[tuple[int, str, int], Tally] = {}

    @classmethod
    def take_up(cls, store: Store, compiled: Compiled, *, anew: bool) -> "ArmExecution":
        """The newest unfinished execution of the spec, or a new one (always a new one if `anew`).

        Raises LeaseHeld if another process works on it. The spec's own lease is held while looking, so that two
        processes started at once do not both begin one.
        """
        executions = store.path / "executions"
        with contextlib.ExitStack() as stack:
            stack.enter_context(Lease(executions / f".{compiled.spec.id}.lease", compiled.spec.id))
            folder = None if anew else newest_unfinished(store, compiled)
            if folder is None:
                folder = ExecutionFolder.create(store, compiled.spec.id, compiled.arm, compiled.command)
            lease = Lease(folder.path / "lease", f"execution {folder.path.name}")
            lease.__enter__()
        return cls(store, compiled, folder, lease)

    def to_do(self) -> list[tuple[int, str]]:
        """The (run, task) that this stint has to carry out."""
        return trials_to_do(self.compiled, self.progress)

    def next_take(self, run: int, task: str) -> int:
        """The number of the next try at a trial, counting those of killed processes."""
        take = self.progress.takes.get((run, task), 0)
        self.progress.takes[(run, task)] = take + 1
        return take

    def nonce(self, place: Place) -> str:
        """What a simulated model draws this call's chances from.

        The execution id, so that resuming equals not having stopped; but a trial that is run again because its
        row was invalid would meet the very faults that made it so, and gets another. So does a request that a
        harness makes again through the gateway: it asks for another sample.
        """
        repeated = self.progress.rows.get((place.run, place.task), 0)
        nonce = f"{self.info.execution_id}~{repeated}" if repeated else self.info.execution_id
        return f"{nonce}~call-{place.call}" if place.call else nonce

    def check_lock(
        self, *, workers: int, launcher: str, worker_package: Mapping[str, str], bindings: Mapping[str, str]
    ) -> None:
        """Makes this stint's lock. Raises LockChanged if the execution was begun in another environment."""
        lock = make_lock(
            self.spec,
            execution_id=self.info.execution_id,
            stint=self.stint,
            workers=workers,
            launcher=launcher,
            worker_package=worker_package,
            bindings=bindings,
        )
        earlier = [self.folder.lock(stint) for stint in self.folder.stints()]
        if earlier:
            if not self.compiled.accept_lock_change:
                refuse_change(earlier[0], lock)
            for old in reversed(earlier):
                for member, settled in old["served"].items():
                    self.references.setdefault(member, {}).update(settled)
        lock["served"] = self.references
        self.lock = lock

    def begin_stint(self, secrets: Iterable[str] = (), *, pacing_alone: str | None = None) -> None:
        """Writes the lock and opens the journal; from here on rows can be recorded, without the `secrets`.

        `pacing_alone` goes into the lock: why other processes with the same key were not counted in, None if they were.
        """
        self.lock["pacing_alone"] = pacing_alone
        write_lock(self.folder.lock_path(self.stint), self.lock)
        self._journal = Journal(self.folder.journal_path(self.stint), secrets)

    def settle(self, member: str, kind: str, value: str) -> None:
        """Keeps what a member answered with first (model, upstream, fingerprint), for later replies to compare with."""
        self.references.setdefault(member, {})[kind] = value
        write_lock(self.folder.lock_path(self.stint), self.lock)

    def tally(self, run: int, task: str, take: int) -> Tally:
        return self._tallies.setdefault((run, task, take), Tally())

    def record_attempt(self, row: AttemptStarted | AttemptEnded) -> None:
        self._append(row)
        self.tally(row.run, row.task, row.take).add(row)

    def record_step(self, step: Step) -> None:
        self._append(step)

    def record_call(self, call: Call) -> None:
        self._append(call)

    def record_closed(self, closed: Closed) -> None:
        self._append(closed)

    def record_trial(self, trial: Trial) -> None:
        self._append(trial)
        place = (trial.run, trial.task)
        self.trials[place] = trial
        self.progress.rows[place] = self.progress.rows.get(place, 0) + 1
        self._tallies.pop((trial.run, trial.task, trial.take), None)

    def _append(self, row: Row) -> None:
        assert self._journal is not None, "begin_stint opens the journal"
        self._journal.append(row)

    def close(self) -> None:
        """Closes the journal and gives up the lease; an execution in which nothing was begun leaves no folder."""
        if self._journal is not None:
            self._journal.close()
        elif not self.folder.stints():
            for path in self.folder.path.iterdir():
                path.unlink()
            self.folder.path.rmdir()
        self._lease.__exit__(None, None, None)


def newest_unfinished(store: Store, compiled: Compiled) -> ExecutionFolder | None:
    """The newest execution of the spec in which there is something left to do."""
    for folder in reversed(executions_of(store, compiled.spec.id)):
        if trials_to_do(compiled, folder.progress()):
            return folder
    return None


def trial_inputs(store: Store, spec: ExperimentSpec) -> dict[str, TrialInput]:
    """What is frozen about each task of the spec, from stored blobs alone."""
    agent = played_agent(spec)
    manifest = store.json_blob(spec.benchmark.manifest)
    prompt = store.blob(agent.prompt).decode()
    guide = store.json_blob(spec.guide.digest) if spec.guide.kind == "rules" else None
    rows = {row["id"]: row for row in manifest["tasks"]}
    allow = None if agent.kind == "code_react" else agent.tools
    toolsets = {name: _allowed(tools, allow) for name, tools in manifest["toolsets"].items()}
    offers = {name: AGENTS[agent.kind].offer(tools) for name, tools in toolsets.items()}
    inputs = {}
    for task in spec.benchmark.tasks:
        if task not in rows:
            raise SpecError(f"task {task} is not in the stored manifest: the store was changed")
        row = rows[task]
        offer: Offer = offers[row["toolset"]]
        system = system_text(prompt + offer.text, guide, task)
        pins = Pins(
            system=text_digest(system),
            instruction=text_digest(row["instruction"]),
            tools=offer.tools.digest if offer.tools else None,
            response_format=offer.response_format.digest if offer.response_format else None,
        )
        names = tuple(tool["function"]["name"] for tool in toolsets[row["toolset"]])
        inputs[task] = TrialInput(task, system, row["instruction"], offer, names, pins)
    return inputs


def _allowed(tools: list[dict[str, Any]], allow: tuple[str, ...] | None) -> list[dict[str, Any]]:
    return [tool for tool in tools if allow is None or tool["function"]["name"] in allow]
