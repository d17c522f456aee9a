"""The parent's side of xspec.guides.altk_program: one process of the environment `altk`, one request at a time."""

import asyncio
import contextlib
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from xspec.errors import WorkerDied

PROGRAM = Path(__file__).with_name("altk_program.py")
MAX_LINE = 256 * 2**20


class AltkProcess:
    """Runs the program with the environment's interpreter while its context lasts. What it prints goes to `log`.

    `variables` are all the environment variables it gets. It stands in an empty folder of its own, since the library
    reads an `.env` in its working folder.
    """

    def __init__(self, python: Path, variables: Mapping[str, str], log: Path) -> None:
        self._python = python
        self._variables = dict(variables)
        self._log = log
        self._stack = contextlib.AsyncExitStack()
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Self:
        folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="xspec-altk-"))
        log = self._stack.enter_context(self._log.open("ab"))
        self._process = await asyncio.create_subprocess_exec(
            self._python,
            "-uP",  # not -I: the environment variables are those given here
            PROGRAM,
            cwd=folder,
            env=self._variables,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
            limit=MAX_LINE,
            start_new_session=True,
        )
        self._stack.push_async_callback(self._end)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The program's answer. Raises WorkerDied if it ended instead."""
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        line = b""
        with contextlib.suppress(ConnectionError):
            process.stdin.write(json.dumps(request).encode() + b"\n")
            await process.stdin.drain()
            line = await process.stdout.readline()
        if not line.endswith(b"\n"):
            code = await process.wait()
            raise WorkerDied(f"the altk process ended with {code}; what it said is in {self._log}")
        answer = json.loads(line)
        assert isinstance(answer, dict)
        return answer

    async def _end(self) -> None:
        process = self._process
        if process is not None and process.returncode is None:
            # It may wait for a reply that nobody needs any more; there is nothing in it to be saved.
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
