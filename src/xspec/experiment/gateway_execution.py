"""An execution whose calls come from another program: the gateway open, with journal, lock and lease."""

import asyncio
import contextlib
import os
import secrets
import signal
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from xspec.errors import RouteStopped, XspecError
from xspec.experiment.arm_execution import ArmExecution
from xspec.experiment.compile import Compiled
from xspec.experiment.lock import key_fingerprints
from xspec.experiment.resources import Resources
from xspec.experiment.started import check_startable
from xspec.gateway.app import GatewayApp
from xspec.gateway.attribution import Attribution
from xspec.gateway.command import Command, check_command, command_environment, hide
from xspec.gateway.conversations import Conversations
from xspec.gateway.endpoint import Frozen
from xspec.gateway.ledger import Ledger
from xspec.gateway.server import GatewayServer, base_url, is_loopback, listen
from xspec.records.rows import Closed
from xspec.route.client import Route
from xspec.spec.agents import GatewayAgent
from xspec.spec.models import ExperimentSpec
from xspec.spec.store import Store

AT_ONCE = 256
"""Attempts under way at once, before 429s teach better: how many there are is the harness's business."""


@dataclass(slots=True)
class OpenGateway:
    """A gateway that can be called. `token` is this execution's alone; `private`: only this machine can reach it."""

    execution_id: str
    spec: ExperimentSpec
    base_url: str
    token: str = field(repr=False)
    private: bool
    _route: Route
    _failed: "asyncio.Future[None]"
    code: int | None = None
    """The exit code of its command, once that has ended."""
    interrupted: bool = False
    """Whether its command, or what else calls it, was cut off."""

    def environment(self, trial: tuple[int, str] | None = None) -> dict[str, str]:
        """The environment for a program that is to call it; its calls belong to `trial` if one is given."""
        url = self.base_url
        if trial is not None:
            url = url.removesuffix("/v1") + f"/t/{trial[0]}/{trial[1]}/v1"
        return command_environment(url, self.token, os.environ)

    @property
    def stopped(self) -> RouteStopped | None:
        """Why the route refuses every further call; None while it does not."""
        return self._route.stopped

    async def wait_failed(self) -> None:
        """Raises what no call can go on after: a full disk, a model server that ended, a mistake in xspec."""
        await asyncio.shield(self._failed)


@dataclass(frozen=True, slots=True)
class GatewayEnd:
    """How a gateway execution ended. `code` is the command's exit code, None if there was none."""

    execution_id: str
    code: int | None
    interrupted: bool
    stopped: XspecError | None

    def exit_code(self) -> int:
        """The command's own, if it says that something went wrong; 3 if the route was stopped; 130 if interrupted.

        Without a command an interrupt is how a gateway is meant to end.
        """
        if self.interrupted and self.code is not None:
            return 130
        return self.code or (self.stopped.exit_code if self.stopped is not None else 0)


@asynccontextmanager
async def open_gateway(
    store: Store,
    compiled: Compiled,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    attempts: int = AT_ONCE,
    command: Sequence[str] = (),
) -> AsyncIterator[OpenGateway]:
    """Begins a new execution and serves its calls while the context is open. `attempts`: how many at once.

    Raises UserError before anything is begun, RouteStopped if a model server does not come up.
    """
    spec = compiled.spec
    assert isinstance(spec.agent, GatewayAgent)
    key_fingerprints(spec)
    check_startable(spec)
    token = f"sk-xspec-{secrets.token_hex(24)}"
    failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    async with contextlib.AsyncExitStack() as stack:
        listening = stack.enter_context(contextlib.closing(listen(host, port)))
        execution = ArmExecution.take_up(store, compiled, anew=True)
        stack.callback(execution.close)
        resources = await stack.enter_async_context(Resources(store, [execution], 1, attempts))
        execution.check_lock(
            workers=attempts,
            launcher="gateway",
            worker_package=resources.worker_package(spec),
            bindings=resources.addresses(spec),
        )
        execution.lock["gateway"] = {
            "address": base_url(listening),
            "program": command[0] if command else None,
        }
        route = resources.route(execution)
        known = (token, *route.secrets)

        def keep(data: bytes) -> str:
            for secret in known:
                data = data.replace(secret.encode(), b"[key]")
            return store.put_blob(data)

        frozen = Frozen(
            route,
            spec.agent.enforce,
            tuple(member.model for member in spec.route.members),
            Conversations(),
            Ledger(execution.record_call, execution.record_step, keep),
        )
        execution.begin_stint(known, pacing_alone=resources.pacing_alone)
        app = GatewayApp(frozen, Attribution(spec), token, lambda error: _fail(failed, error))
        crash = asyncio.create_task(_told(resources.wait_crashed(), failed))
        stack.callback(crash.cancel)
        gateway = OpenGateway(
            execution.info.execution_id,
            spec,
            base_url(listening),
            token,
            is_loopback(listening),
            route,
            failed,
        )
        try:
            async with GatewayServer(app, listening):
                yield gateway
        except (asyncio.CancelledError, RouteStopped) as cut:
            # Whoever calls it ends in order, and so does it.
            gateway.interrupted = isinstance(cut, asyncio.CancelledError)
            execution.record_closed(_closed(gateway))
            raise
        execution.record_closed(_closed(gateway))


def run_gateway(
    store: Store,
    compiled: Compiled,
    command: Sequence[str] = (),
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    attempts: int = AT_ONCE,
    opened: Callable[[OpenGateway], None] = lambda gateway: None,
) -> GatewayEnd:
    """Serves until the command ends or, without one, until interrupted. `opened` is told once it can be called.

    Raises XspecError if it could not be opened, or could not go on.
    """
    check_command(command)
    return asyncio.run(_run(store, compiled, command, host, port, attempts, opened))


async def _run(
    store: Store,
    compiled: Compiled,
    command: Sequence[str],
    host: str,
    port: int,
    attempts: int,
    opened: Callable[[OpenGateway], None],
) -> GatewayEnd:
    interrupted = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, interrupted.set)
    async with open_gateway(
        store, compiled, host=host, port=port, attempts=attempts, command=command
    ) as gateway:
        opened(gateway)
        gateway.code = await _until_done(gateway, command, interrupted)
        gateway.interrupted = interrupted.is_set() and bool(command)
    return GatewayEnd(gateway.execution_id, gateway.code, interrupted.is_set(), gateway.stopped)


async def _until_done(gateway: OpenGateway, command: Sequence[str], interrupted: asyncio.Event) -> int | None:
    """Waits for the command, an interrupt or a failure; ends the command; its exit code."""
    async with contextlib.AsyncExitStack() as stack:
        process = None
        waits: list[asyncio.Task[Any]] = [
            asyncio.create_task(interrupted.wait()),
            asyncio.create_task(gateway.wait_failed()),
        ]
        if command:
            hide(member.api_key_env for member in gateway.spec.route.members if member.kind == "openai")
            process = await Command.start(command, gateway.environment())
            stack.push_async_callback(process.end)
            waits.append(asyncio.create_task(process.wait()))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)
        failure = None if waits[1].cancelled() else waits[1].exception()
        if failure is not None:
            raise failure
        if process is None:
            return None
        await process.end()
        return await process.wait()


def _closed(gateway: OpenGateway) -> Closed:
    if gateway.interrupted:
        return Closed(at=time.time(), ended="interrupted", code=gateway.code)
    if gateway.stopped is not None:
        return Closed(at=time.time(), ended="stopped", code=gateway.code)
    return Closed(at=time.time(), ended="failed" if gateway.code else "done", code=gateway.code)


def _fail(failed: "asyncio.Future[None]", error: BaseException) -> None:
    if not failed.done():
        failed.set_exception(error)
        failed.exception()  # it may be that nobody waits any more


async def _told(crash: Coroutine[Any, Any, None], failed: "asyncio.Future[None]") -> None:
    try:
        await crash
    except XspecError as error:
        _fail(failed, error)
