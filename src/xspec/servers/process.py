"""The parent's side of a server process: start it, watch it, end it."""

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import orjson

from xspec.errors import RouteStopped

ENVIRONMENT = (
    "PATH",
    "PYTHONPATH",
    "PYTHONHOME",
    "VIRTUAL_ENV",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
)
"""What a server process inherits. It needs no key, so it gets none."""

LOG_TAIL = 2000


class ServerProcess:
    """A model server in its own process, for as long as the context lasts.

    `module` is the program: it reads one line of JSON, its configuration, from stdin, prints `{"port": N}`, and
    serves on loopback until stdin closes. `called` and `cause` are how errors name it. `environ` is added to the
    allow-listed environment.

    The process has its own session, so that Ctrl-C in a terminal reaches the parent alone, which may finish
    what it has begun; if the parent is killed, the server ends with its stdin.
    """

    def __init__(
        self,
        module: str,
        log: Path,
        *,
        called: str,
        cause: str,
        arguments: Sequence[str] = (),
        environ: Mapping[str, str] | None = None,
        ready_timeout_s: float = 30.0,
        end_timeout_s: float = 5.0,
    ) -> None:
        self._module = module
        self._arguments = tuple(arguments)
        self._environ = dict(environ or {})
        self._called = called
        self._cause = cause
        self._log = log
        self._ready_timeout_s = ready_timeout_s
        self._end_timeout_s = end_timeout_s
        self._process: asyncio.subprocess.Process | None = None
        self._base_url: str | None = None
        self._closing = False

    async def start(self, config: Mapping[str, Any]) -> str:
        """Start the server with its configuration and return `http://127.0.0.1:<port>`.

        Raises RouteStopped if it does not come up, with the end of its log.
        """
        if self._process is not None:
            raise RuntimeError(f"{self._called} was started before")
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                *("-P", "-m", self._module, *self._arguments),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                env={name: os.environ[name] for name in ENVIRONMENT if name in os.environ} | self._environ,
                start_new_session=True,
            )
        try:
            port = await asyncio.wait_for(self._handshake(self._process, config), self._ready_timeout_s)
        except (TimeoutError, OSError, ValueError, KeyError) as error:
            await self.aclose()
            raise self._died("did not start") from error
        self._base_url = f"http://127.0.0.1:{port}"
        return self._base_url

    @property
    def base_url(self) -> str:
        """The address, without a path. Raises RuntimeError before `start`."""
        if self._base_url is None:
            raise RuntimeError(f"{self._called} has not been started")
        return self._base_url

    @property
    def pid(self) -> int | None:
        """The process id; None before `start`."""
        return None if self._process is None else self._process.pid

    def check(self) -> None:
        """Raises RouteStopped if the process has ended although nobody closed it."""
        if self._process is not None and self._process.returncode is not None and not self._closing:
            raise self._died(f"ended with code {self._process.returncode}")

    async def wait_crashed(self) -> None:
        """Wait until the process ends; then raise RouteStopped, or return if it was closed on purpose."""
        if self._process is None:
            raise RuntimeError(f"{self._called} has not been started")
        await self._process.wait()
        self.check()

    async def aclose(self) -> None:
        """End the process: first by closing its stdin, after `end_timeout_s` by force. Idempotent."""
        process, self._closing = self._process, True
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), self._end_timeout_s)
        except TimeoutError:
            process.kill()
            await process.wait()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _handshake(self, process: asyncio.subprocess.Process, config: Mapping[str, Any]) -> int:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(orjson.dumps(config) + b"\n")
        await process.stdin.drain()
        return int(orjson.loads(await process.stdout.readline())["port"])

    def _died(self, how: str) -> RouteStopped:
        tail = self._log.read_bytes()[-LOG_TAIL:].decode("utf-8", "replace").strip()
        what = f"{self._called} {how}" + (f": {tail}" if tail else "")
        return RouteStopped(self._cause, what, f"see {self._log}, then run again: it resumes")
