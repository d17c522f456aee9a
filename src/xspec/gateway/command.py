"""The command that a gateway runs: its environment, and its end."""

import asyncio
import contextlib
import ctypes
import os
import shutil
import signal
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import psutil

from xspec.errors import UserError

PASSED = frozenset(
    (
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TZ", "TMPDIR", "LANG", "LANGUAGE"),
        *("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE"),
    )
)
"""Variables that the command inherits, and those that begin with `LC_`. None of them holds a key."""

GRACE_S = 5.0

_KEEPER = Path(__file__).with_name("keeper.py")


def command_environment(base_url: str, token: str, environ: Mapping[str, str]) -> dict[str, str]:
    """What the command is started with: no key but the token, no proxy, and nothing that reroutes its client."""
    passed = {name: value for name, value in environ.items() if name in PASSED or name.startswith("LC_")}
    return passed | {
        "OPENAI_BASE_URL": base_url,
        "OPENAI_API_BASE": base_url,
        "OPENAI_API_KEY": token,
        "NO_PROXY": "127.0.0.1,localhost,::1",
    }


def hide(names: Iterable[str]) -> None:
    """Blanks variables where other programs of this user could read them; `os.environ` keeps them.

    A command can look at the environment with which the gateway was started (on Linux `/proc/<pid>/environ`).
    """
    getenv = ctypes.CDLL(None).getenv
    getenv.restype, getenv.argtypes = ctypes.c_void_p, [ctypes.c_char_p]
    for name in names:
        at = getenv(name.encode())
        if at:
            ctypes.memset(at, ord("*"), len(ctypes.string_at(at)))


def check_command(command: Sequence[str]) -> None:
    """Raises UserError if there is no such program."""
    if command and shutil.which(command[0]) is None:
        raise UserError(f"the command {command[0]!r} is not found, or is no program that can be run")


class Command:
    """One run of a command, in a process group of its own, so that what it starts ends with it.

    What left the group is known by the token in its environment. A keeper (xspec.gateway.keeper) ends the group if
    this process is killed before it could.
    """

    def __init__(
        self, process: asyncio.subprocess.Process, keeper: asyncio.subprocess.Process, token: str
    ) -> None:
        self._process = process
        self._keeper = keeper
        self._token = token

    @classmethod
    async def start(cls, command: Sequence[str], environment: Mapping[str, str]) -> "Command":
        """Starts it with the terminal's input and output. Raises UserError if it cannot be started."""
        keeper = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", str(_KEEPER)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            env={},
            start_new_session=True,
        )
        try:
            process = await asyncio.create_subprocess_exec(*command, env=environment, start_new_session=True)
        except OSError as error:
            await _over(keeper)
            raise UserError(f"the command {command[0]!r} cannot be started: {error.strerror}") from None
        assert keeper.stdin is not None
        keeper.stdin.write(b"%d\n" % process.pid)
        return cls(process, keeper, environment["OPENAI_API_KEY"])

    async def wait(self) -> int:
        """Its exit code, as a shell has it: 128 and the number of the signal that killed it."""
        code = await self._process.wait()
        return code if code >= 0 else 128 - code

    async def end(self) -> None:
        """Ends all of it: the group is asked first, and made to after a grace. Idempotent."""
        self._signal(signal.SIGTERM)
        if self._process.returncode is None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), GRACE_S)
        self._signal(signal.SIGKILL)
        await self._process.wait()
        _kill_holders(self._token)
        await _over(self._keeper)

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


def _kill_holders(token: str) -> None:
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.environ().get("OPENAI_API_KEY") == token:
                process.kill()


async def _over(keeper: asyncio.subprocess.Process) -> None:
    """There is nothing to be kept any more. Killed, so that it ends no group that has the number by now."""
    if keeper.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            keeper.kill()
    await keeper.wait()
