"""The lease of an execution: two processes cannot work on one at the same time.

A kernel lock decides, so a killed holder frees it at once and there is nothing to clean up; the file's text (pid,
start time, host) only tells a person who holds it.
"""

import fcntl
import json
import os
import socket
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from xspec.errors import UserError


class LeaseHeld(UserError):
    """Another process works on this execution."""


class Lease:
    """Holds `path` while the context is open. Raises LeaseHeld at once if another process has it.

    `what` is what the lease is of, for the message.
    """

    def __init__(self, path: Path, what: str) -> None:
        self.path = path
        self.what = what
        self._fd = -1

    def __enter__(self) -> Self:
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _told(os.pread(fd, 500, 0))
            os.close(fd)
            raise LeaseHeld(
                f"another process works on {self.what} ({holder}); wait for it, or end it"
            ) from None
        who = {"pid": os.getpid(), "started": psutil.Process().create_time(), "host": socket.gethostname()}
        os.ftruncate(fd, 0)
        os.pwrite(fd, json.dumps(who).encode(), 0)
        self._fd = fd
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._fd)
        self._fd = -1


def _told(text: bytes) -> str:
    """Who holds a lease, for a person."""
    try:
        who = json.loads(text)
        return f"process {who['pid']} on {who['host']}"
    except (ValueError, KeyError, TypeError):
        return "it is just starting"
