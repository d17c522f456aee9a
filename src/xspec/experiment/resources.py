"""What trials need besides their spec: benchmark workers, the simulated model, routes. The arms share them."""

import asyncio
import os
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from xspec.benchmarks.pool import WorkerPool
from xspec.errors import UserError
from xspec.experiment.arm_execution import ArmExecution
from xspec.experiment.rehearse import rehearsal_config, rehearsal_members
from xspec.records.rows import Place
from xspec.rehearsal.address import TrialAddress, member_key, trial_path
from xspec.rehearsal.process import RehearsalServer
from xspec.route.client import Route
from xspec.route.members import Binding
from xspec.route.pacing import Pacers
from xspec.route.shared_pace import runtime_folder
from xspec.spec.canonical import canonical_bytes, digest_of
from xspec.spec.models import BenchmarkSpec, ExperimentSpec
from xspec.spec.store import Store


class Resources:
    """Starts what the executions need when the context opens, and ends all of it when it closes."""

    def __init__(self, store: Store, executions: Sequence[ArmExecution], workers: int) -> None:
        self._store = store
        self._executions = executions
        self._workers = workers
        self._stack = AsyncExitStack()
        self._pools: dict[bytes, WorkerPool] = {}
        self._packages: dict[bytes, dict[str, str]] = {}
        self._pacers = Pacers(workers, runtime_folder())
        self._rehearsal: dict[bytes, str] = {}
        self._servers: list[RehearsalServer] = []

    async def __aenter__(self) -> Self:
        self._stack.callback(self._pacers.close)
        try:
            for execution in self._executions:
                await self._open_pool(execution.spec.benchmark)
            await self._start_rehearsals()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def wait_crashed(self) -> None:
        """Raises RouteStopped once a simulated model has ended by itself; returns only if there is none to watch."""
        await asyncio.gather(*(server.wait_crashed() for server in self._servers))

    def pool(self, spec: ExperimentSpec) -> WorkerPool:
        """The workers of the spec's benchmark."""
        return self._pools[_key(spec.benchmark)]

    def worker_package(self, spec: ExperimentSpec) -> dict[str, str]:
        """Packages and versions the benchmark's worker runs."""
        return self._packages[_key(spec.benchmark)]

    def addresses(self, spec: ExperimentSpec) -> dict[str, str]:
        """Base URL of each member that was started here."""
        return {m.name: self._rehearsal[_key(spec.benchmark)] for m in rehearsal_members(spec)}

    def route(self, execution: ArmExecution) -> Route:
        """The guarded route of one execution; closed with these resources."""
        spec = execution.spec
        route = Route(
            self._store.spec_bytes(spec.id),
            self._store.spec_path(spec.id),
            environ=os.environ,
            bindings=self._bindings(execution),
            record=execution.record_attempt,
            fingerprints=execution.lock["must_match"]["keys"],
            references={member: dict(settled) for member, settled in execution.references.items()},
            settle=execution.settle,
            ca_bytes=self._store.blob(spec.route.ca) if spec.route.ca else None,
            pacers=self._pacers,
        )
        self._stack.push_async_callback(route.aclose)
        return route

    def _bindings(self, execution: ArmExecution) -> dict[str, Binding]:
        bindings = {}
        for member in rehearsal_members(execution.spec):
            key = member_key(member.model_dump(mode="python"))

            def path(place: Place, key: str = key) -> str:
                address = TrialAddress(execution.nonce(place.run, place.task), key, place.run, place.task)
                return trial_path(address) + "/chat/completions"

            bindings[member.name] = Binding(self.addresses(execution.spec)[member.name], path)
        return bindings

    async def _open_pool(self, benchmark: BenchmarkSpec) -> None:
        key = _key(benchmark)
        if key in self._pools:
            return
        pool = WorkerPool(
            benchmark.kind,
            benchmark.version,
            benchmark.split,
            benchmark.settings or {},
            members=self._workers,
            log=self._log("worker"),
        )
        await self._stack.enter_async_context(pool)
        manifest = await pool.describe()
        if digest_of(canonical_bytes(manifest)) != benchmark.manifest:
            raise UserError(_changed_manifest(self._store.json_blob(benchmark.manifest), manifest))
        self._pools[key] = pool
        self._packages[key] = manifest["package"]

    async def _start_rehearsals(self) -> None:
        """One simulated model for each benchmark whose arms want one: it plays that benchmark's solutions."""
        wanted: dict[bytes, list[ExperimentSpec]] = {}
        for execution in self._executions:
            if rehearsal_members(execution.spec):
                wanted.setdefault(_key(execution.spec.benchmark), []).append(execution.spec)
        for key, specs in wanted.items():
            config = await rehearsal_config(specs, self._store, self._pools[key])
            server = await self._stack.enter_async_context(RehearsalServer(self._log("rehearsal")))
            self._rehearsal[key] = await server.start(config)
            self._servers.append(server)

    def _log(self, name: str) -> Path:
        """Where a process started for these executions writes its complaints: the first execution's folder."""
        first = self._executions[0]
        return first.folder.path / f"{name}-{first.stint}.log"


def _key(benchmark: BenchmarkSpec) -> bytes:
    return canonical_bytes(
        [benchmark.kind, benchmark.version, benchmark.split, benchmark.settings, benchmark.manifest]
    )


def _changed_manifest(stored: dict[str, Any], live: dict[str, Any]) -> str:
    old = {row["id"]: row for row in stored["tasks"]}
    new = {row["id"]: row for row in live["tasks"]}
    changed = sorted(task for task in old.keys() | new.keys() if old.get(task) != new.get(task))
    named = (
        f"{len(changed)} tasks, among them {', '.join(changed[:3])}" if changed else "its tools or version"
    )
    return (
        f"the benchmark is not the one the spec was compiled for: {stored['benchmark']} differs in {named}; "
        "restore the data, or delete the store's cache/ and compile anew (a new id)"
    )
