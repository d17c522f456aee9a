"""The command that a gateway runs: its environment, and its end."""

import asyncio
import contextlib
import os
import shutil
import signal
from collections.abc import Mapping, Sequence

from xspec.errors import UserError

PASSED = frozenset(
    (
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TZ", "TMPDIR", "LANG", "LANGUAGE"),
        *("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE"),
    )
)
"""Variables that the command inherits, and those that begin with `LC_`. None of them holds a key."""

GRACE_S = 5.0


def command_environment(base_url: str, token: str, environ: Mapping[str, str]) -> dict[str, str]:
    """What the command is started with: no key but the token, no proxy, and nothing that reroutes its client."""
    passed = {name: value for name, value in environ.items() if name in PASSED or name.startswith("LC_")}
    return passed | {
        "OPENAI_BASE_URL": base_url,
        "OPENAI_API_BASE": base_url,
        "OPENAI_API_KEY": token,
        "NO_PROXY": "127.0.0.1,localhost,::1",
    }


def check_command(command: Sequence[str]) -> None:
    """Raises UserError if there is no such program."""
    if command and shutil.which(command[0]) is None:
        raise UserError(f"the command {command[0]!r} is not found, or is no program that can be run")


class Command:
    """One run of a command, in a process group of its own, so that what it starts ends with it."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, command: Sequence[str], environment: Mapping[str, str]) -> "Command":
        """Starts it with the terminal's input and output. Raises UserError if it cannot be started."""
        try:
            process = await asyncio.create_subprocess_exec(*command, env=environment, start_new_session=True)
        except OSError as error:
            raise UserError(f"the command {command[0]!r} cannot be started: {error.strerror}") from None
        return cls(process)

    async def wait(self) -> int:
        """Its exit code, as a shell has it: 128 and the number of the signal that killed it."""
        code = await self._process.wait()
        return code if code >= 0 else 128 - code

    async def end(self) -> None:
        """Ends the whole group: asked first, made to after a grace. Idempotent."""
        self._signal(signal.SIGTERM)
        if self._process.returncode is None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), GRACE_S)
        self._signal(signal.SIGKILL)
        await self._process.wait()

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)
