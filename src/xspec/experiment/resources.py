"""What trials need besides their spec: benchmark workers, model servers, routes. The arms share them."""

import os
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from xspec.benchmarks.external import EXTERNAL
from xspec.benchmarks.pool import WorkerPool
from xspec.counted import counted
from xspec.errors import UserError
from xspec.experiment.arm_execution import ArmExecution
from xspec.experiment.rehearse import kept_solutions
from xspec.experiment.started import StartedServers
from xspec.route.client import Route
from xspec.route.pacing import Pacers
from xspec.route.shared_pace import runtime_folder
from xspec.spec.canonical import canonical_bytes, digest_of
from xspec.spec.diff import changed_tasks
from xspec.spec.models import BenchmarkSpec, ExperimentSpec
from xspec.spec.store import Store


class Resources:
    """Starts what the executions need when the context opens, and ends all of it when it closes.

    `workers` is the number of worlds at once, and of attempts unless `attempts` says otherwise.
    """

    def __init__(
        self, store: Store, executions: Sequence[ArmExecution], workers: int, attempts: int | None = None
    ) -> None:
        self._store = store
        self._executions = executions
        self._workers = workers
        self._stack = AsyncExitStack()
        self._pools: dict[bytes, WorkerPool] = {}
        self._packages: dict[bytes, dict[str, str]] = {}
        self._pacers = Pacers(attempts or workers, runtime_folder())
        self._servers = StartedServers(self._stack, self._log)

    async def __aenter__(self) -> Self:
        self._stack.callback(self._pacers.close)
        try:
            for execution in self._executions:
                if self._needs_worker(execution.spec):
                    await self._open_pool(execution.spec.benchmark)
                if self._opens_worlds(execution.spec):
                    await self.pool(execution.spec).warm()
            specs = [execution.spec for execution in self._executions]
            await self._servers.start(
                specs, self._store, lambda spec: self.pool(spec) if self._needs_worker(spec) else None
            )
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def wait_crashed(self) -> None:
        """Raises RouteStopped once a model server has ended by itself; returns only if there is none to watch."""
        await self._servers.wait_crashed()

    def pool(self, spec: ExperimentSpec) -> WorkerPool:
        """The workers of the spec's benchmark."""
        return self._pools[_key(spec.benchmark)]

    def worker_package(self, spec: ExperimentSpec) -> dict[str, str]:
        """Packages and versions the benchmark's worker runs."""
        return self._packages.get(_key(spec.benchmark), {})

    def addresses(self, spec: ExperimentSpec) -> dict[str, str]:
        """Base URL of each member that was started here."""
        return self._servers.addresses(spec)

    @property
    def pacing_alone(self) -> str | None:
        """Why the routes cannot share the pace of other processes with the same key; None if they do."""
        return self._pacers.alone

    def route(self, execution: ArmExecution) -> Route:
        """The guarded route of one execution; closed with these resources."""
        spec = execution.spec
        route = Route(
            self._store.spec_bytes(spec.id),
            self._store.spec_path(spec.id),
            environ=os.environ,
            bindings=self._servers.bindings(spec, execution.nonce),
            record=execution.record_attempt,
            fingerprints=execution.lock["must_match"]["keys"],
            references={member: dict(settled) for member, settled in execution.references.items()},
            settle=execution.settle,
            ca_bytes=self._store.blob(spec.route.ca) if spec.route.ca else None,
            pacers=self._pacers,
        )
        self._stack.push_async_callback(route.aclose)
        return route

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
        check_manifest(self._store, benchmark, manifest)
        self._pools[key] = pool
        self._packages[key] = {**manifest["package"], **pool.surroundings()}

    @staticmethod
    def _opens_worlds(spec: ExperimentSpec) -> bool:
        return spec.agent.kind != "gateway"

    def _needs_worker(self, spec: ExperimentSpec) -> bool:
        """Whether worlds are opened, or a simulated model has to be told solutions that the store does not have."""
        if self._opens_worlds(spec):
            return True
        simulated = any(member.kind == "rehearsal" for member in spec.route.members)
        known = spec.benchmark.kind == EXTERNAL or kept_solutions(spec.benchmark, self._store) is not None
        return simulated and not known

    def _log(self, name: str) -> Path:
        """Where a process started for these executions writes its complaints: the first execution's folder."""
        first = self._executions[0]
        return first.folder.path / f"{name}-{first.stint}.log"


def _key(benchmark: BenchmarkSpec) -> bytes:
    return canonical_bytes(
        [benchmark.kind, benchmark.version, benchmark.split, benchmark.settings, benchmark.manifest]
    )


def check_manifest(store: Store, benchmark: BenchmarkSpec, live: dict[str, Any]) -> None:
    """Raises UserError if the benchmark at hand is not the one that the spec was compiled for."""
    if digest_of(canonical_bytes(live)) != benchmark.manifest:
        raise UserError(_changed_manifest(store.json_blob(benchmark.manifest), live))


def _changed_manifest(stored: dict[str, Any], live: dict[str, Any]) -> str:
    changed, _ = changed_tasks(stored, live)
    named = "its tools or version"
    if changed:
        named = (
            f"{counted(len(changed), 'task')} ({', '.join(changed[:3])}{', …' if len(changed) > 3 else ''})"
        )
    return (
        f"the benchmark is not the one the spec was compiled for: {stored['benchmark']} differs in {named}; "
        "restore the data, or delete the store's cache/ and compile anew (a new id)"
    )
