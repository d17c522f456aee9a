"""Members that xspec starts itself: the simulated model and the local one. Their settings are identity; where they
listen is this stint's.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from xspec.benchmarks.external import EXTERNAL
from xspec.benchmarks.pool import WorkerPool
from xspec.experiment.rehearse import rehearsal_config
from xspec.local.model import require_local
from xspec.local.process import LocalServer, server_settings
from xspec.records.rows import Place
from xspec.rehearsal.address import TrialAddress, member_key, trial_path
from xspec.rehearsal.process import RehearsalServer
from xspec.route.members import Binding
from xspec.servers.process import ServerProcess
from xspec.spec.canonical import canonical_bytes
from xspec.spec.members import LocalMember, RehearsalMember
from xspec.spec.models import ExperimentSpec
from xspec.spec.store import Store

StartedMember = RehearsalMember | LocalMember
PLAIN_PATH = "/v1/chat/completions"


def started_members(spec: ExperimentSpec) -> list[StartedMember]:
    """The members of the spec's route that xspec starts itself."""
    return [member for member in spec.route.members if member.kind != "openai"]


def check_startable(spec: ExperimentSpec) -> None:
    """Raises UserError if a member needs something that is not installed, before anything is begun."""
    for member in started_members(spec):
        if isinstance(member, LocalMember):
            require_local(member.model, member.gguf_sha256)


class StartedServers:
    """The servers of all executions: one for each simulated benchmark, one for each setting of the local model."""

    def __init__(self, stack: AsyncExitStack, log: Callable[[str], Path]) -> None:
        self._stack = stack
        self._log = log
        self._urls: dict[bytes, str] = {}
        self._servers: list[ServerProcess] = []

    async def start(
        self,
        specs: Sequence[ExperimentSpec],
        store: Store,
        pool: Callable[[ExperimentSpec], WorkerPool | None],
    ) -> None:
        """Starts what the specs' members need; `stack` ends it. Raises RouteStopped if one does not come up."""
        wanted: dict[bytes, list[tuple[ExperimentSpec, StartedMember]]] = {}
        for spec in specs:
            for member in started_members(spec):
                wanted.setdefault(_key(spec, member), []).append((spec, member))
        for key, users in wanted.items():
            spec, member = users[0]
            if isinstance(member, LocalMember):
                await self._start(key, LocalServer(self._log("local")), server_settings(member))
            else:
                config = await rehearsal_config([s for s, _ in users], store, pool(spec))
                await self._start(key, RehearsalServer(self._log("rehearsal")), config)

    async def _start(self, key: bytes, server: ServerProcess, config: Mapping[str, Any]) -> None:
        await self._stack.enter_async_context(server)
        self._urls[key] = await server.start(config)
        self._servers.append(server)

    async def wait_crashed(self) -> None:
        """Raises RouteStopped once a server has ended by itself; returns only if there is none to watch."""
        await asyncio.gather(*(server.wait_crashed() for server in self._servers))

    def addresses(self, spec: ExperimentSpec) -> dict[str, str]:
        """Base URL of each member that was started here."""
        return {member.name: self._urls[_key(spec, member)] for member in started_members(spec)}

    def bindings(self, spec: ExperimentSpec, nonce: Callable[[Place], str]) -> dict[str, Binding]:
        """Where each started member's calls go. `nonce` is what a simulated model draws a call's chances from."""
        urls = self.addresses(spec)
        tasks = frozenset(spec.benchmark.tasks if spec.benchmark.kind != EXTERNAL else ())
        return {
            member.name: Binding(urls[member.name], _path(member, nonce, tasks))
            for member in started_members(spec)
        }


def _path(
    member: StartedMember, nonce: Callable[[Place], str], tasks: Collection[str]
) -> Callable[[Place], str]:
    if isinstance(member, LocalMember):
        return lambda place: PLAIN_PATH
    key = member_key(member.model_dump(mode="python"))

    def path(place: Place) -> str:
        if place.task not in tasks:  # a call through the gateway that belongs to no trial
            return PLAIN_PATH
        address = TrialAddress(nonce(place), key, place.run, place.task)
        return trial_path(address) + "/chat/completions"

    return path


def _key(spec: ExperimentSpec, member: StartedMember) -> bytes:
    """Members with equal keys are served by one process."""
    if isinstance(member, LocalMember):
        return canonical_bytes(["local", server_settings(member)])
    benchmark = spec.benchmark
    return canonical_bytes(
        [
            "rehearsal",
            benchmark.kind,
            benchmark.version,
            benchmark.split,
            benchmark.settings,
            benchmark.manifest,
        ]
    )
