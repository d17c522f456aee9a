"""One pace for all processes that use the same key at the same origin: a small table in a file, kept right by locks.

    <folder>/state     the window, and a row for each process: attempts under way, limit, place in the queue
    <folder>/0, 1, …   one empty file a row, locked by its process for as long as it lives

Every change is made under a lock of `state`, which takes microseconds. The kernel frees a killed process's locks, so
its row is recognised as dead, and cleared, by the first process that would have to wait for it. Nothing is left behind
by processes that end in order; a state that no living process uses is begun anew.

Processes may have been started with different limits. The smallest one holds for all of them: whoever asked for
few at once gets that promise kept, whatever else is started beside it.

Processes that must wait ask again every few milliseconds, at most fifty. They are served in the order of tickets, one
attempt a ticket, so that a busy process does not starve the others.
"""

import contextlib
import fcntl
import os
import stat
import struct
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from xspec.route.window import Window

ROWS = 64
POLL_S = (0.005, 0.05)
"""First and longest wait before asking again while other processes are in the way; the steps between grow by half."""
SOLO_POLL_S = 1.0
"""The same where only this process's own attempts are in the way: their ends are heard of at once."""
OVERDUE_S = 1.0
"""A process that is so late to ask again (stopped, or starved of CPU) loses its place in the queue."""
BURY_EVERY_S = 0.25

_HEAD = struct.Struct("<dIIIIdddQ")
_ROW = struct.Struct("<IIQd")
_SIZE = _HEAD.size + ROWS * _ROW.size


def runtime_folder() -> Path | None:
    """The user's own folder for what lives no longer than processes; None if there is no safe one.

    `XDG_RUNTIME_DIR`, else a folder of the user's below the one for temporary files. Others' folders are not trusted.
    """
    own = os.environ.get("XDG_RUNTIME_DIR")
    folder = Path(own) / "xspec" if own else Path(tempfile.gettempdir()) / f"xspec-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return None
    safe = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022
    return folder / "pace" if safe else None


class SharedMeter:
    """Counts the attempts of all processes that name the same folder. Raises OSError if it cannot be used."""

    def __init__(self, folder: Path, limit: int) -> None:
        self.limit = limit
        self._folder = folder
        self._in_flight = 0
        self._ticket = 0
        self._poll_s = POLL_S[0]
        self._buried = 0.0
        self._last = Window(float(limit))
        self._row = -1
        self._state = _open_locked(folder)
        try:
            self._life = self._join()
        except BaseException:
            os.close(self._state)
            raise
        fcntl.flock(self._state, fcntl.LOCK_UN)

    @property
    def window(self) -> float:
        """The shared window when this process last looked."""
        return self._last.size

    def take(self, waited_out: int) -> tuple[int, int] | float:
        """(epoch, attempts under way in all processes with this one), or the seconds after which to ask again."""
        now = time.monotonic()
        with self._locked():
            window, ticket, rows = self._read()
            others = [row for i, row in enumerate(rows) if row[1] and i != self._row]
            limit = min(self.limit, *(row[1] for row in others)) if others else self.limit
            total = self._in_flight + sum(row[0] for row in others)
            pause = window.pause(waited_out, now)
            if pause > 0:
                return pause
            mine = self._ticket or ticket + 1
            before = any(row[2] and row[2] < mine and row[3] + OVERDUE_S > now for row in others)
            if not before and total < int(min(window.size, limit)):
                self._in_flight += 1
                self._ticket, self._poll_s = 0, POLL_S[0]
                if now < window.renewed:
                    window.admit(now)
                    self._write_head(window, ticket)
                self._write_row(0.0)
                return window.epoch, total + 1
            if others and now - self._buried > BURY_EVERY_S:
                self._buried = now
                self._bury(rows)
            if not self._ticket:
                self._ticket = mine
                self._write_head(window, mine)
            wait = self._poll_s if before or total > self._in_flight else SOLO_POLL_S
            self._poll_s = min(self._poll_s * 1.5, POLL_S[1])
            self._write_row(now + wait)
            return wait

    def give_back(self) -> None:
        """An attempt is over. Only this process writes its row, so no lock is needed."""
        self._in_flight -= 1
        self._write_row(time.monotonic() + SOLO_POLL_S)

    def grow(self) -> None:
        if self._last.size >= self.limit and not self._last.streak and self._peek() == self._last:
            return
        with self._locked():
            window, ticket, rows = self._read()
            window.grow(min(row[1] for row in rows if row[1]))
            self._write_head(window, ticket)

    def cut(self, epoch: int, asked_s: float | None) -> int:
        with self._locked():
            window, ticket, rows = self._read()
            window.size = min(window.size, *(float(row[1]) for row in rows if row[1]))
            pause = window.cut(epoch, asked_s, time.monotonic())
            self._write_head(window, ticket)
        return pause

    def foresee(self, left: int, reset_s: float, sent: float) -> None:
        with self._locked():
            window, ticket, rows = self._read()
            window.foresee(left - sum(row[0] for row in rows) + 1, reset_s, sent, time.monotonic())
            self._write_head(window, ticket)

    def stop_waiting(self) -> None:
        if self._ticket:
            self._ticket = 0
            self._write_row(0.0)

    def close(self) -> None:
        """Give up the row; who leaves last removes the folder."""
        if self._state < 0:
            return
        with self._locked(), contextlib.suppress(OSError):
            os.pwrite(self._state, bytes(_ROW.size), _HEAD.size + self._row * _ROW.size)
            _, _, rows = self._read()
            if not self._bury(rows):
                for path in self._folder.iterdir():
                    path.unlink()
                self._folder.rmdir()
        os.close(self._life)
        os.close(self._state)
        self._state = -1

    def _join(self) -> int:
        """Takes the first free row; returns the descriptor that holds its lock."""
        missing = _SIZE - os.fstat(self._state).st_size
        if missing > 0:
            os.pwrite(self._state, bytes(missing), _SIZE - missing)
        _, _, rows = self._read()
        if not self._bury(rows):
            self._write_head(Window(float(self.limit)), 0)
        for row in range(ROWS):
            life = os.open(self._folder / str(row), os.O_RDWR | os.O_CREAT, 0o600)
            if _locked_now(life):
                self._row = row
                self._write_row(0.0)
                return life
            os.close(life)
        raise OSError(f"more than {ROWS} processes share one key")

    def _bury(self, rows: list[tuple[int, int, int, float]]) -> int:
        """Clears the rows of the dead; returns how many other processes live."""
        living = 0
        for i, row in enumerate(rows):
            if not row[1] or i == self._row:
                continue
            try:
                life = os.open(self._folder / str(i), os.O_RDWR)
            except FileNotFoundError:
                dead = True
            else:
                dead = _locked_now(life)
                os.close(life)
            if dead:
                os.pwrite(self._state, bytes(_ROW.size), _HEAD.size + i * _ROW.size)
            living += not dead
        return living

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        fcntl.flock(self._state, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._state, fcntl.LOCK_UN)

    def _peek(self) -> Window:
        return _window(_HEAD.unpack(os.pread(self._state, _HEAD.size, 0)))

    def _read(self) -> tuple[Window, int, list[tuple[int, int, int, float]]]:
        data = os.pread(self._state, _SIZE, 0)
        head = _HEAD.unpack_from(data)
        self._last = _window(head)
        return self._last, head[-1], list(_ROW.iter_unpack(data[_HEAD.size :]))

    def _write_head(self, window: Window, ticket: int) -> None:
        w = window
        head = (w.size, w.epoch, w.streak, w.pauses, w.left, w.until, w.renewed, w.news, ticket)
        os.pwrite(self._state, _HEAD.pack(*head), 0)

    def _write_row(self, due: float) -> None:
        row = _ROW.pack(self._in_flight, self.limit, self._ticket, due)
        os.pwrite(self._state, row, _HEAD.size + self._row * _ROW.size)


def _window(head: tuple[Any, ...]) -> Window:
    size, epoch, streak, pauses, left, until, renewed, news, _ = head
    return Window(max(1.0, size), epoch, streak, pauses, until, left, renewed, news)


def _open_locked(folder: Path) -> int:
    """The state file, open and locked. Whoever left last may have removed it in between: then again."""
    while True:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            fd = os.open(folder / "state", os.O_RDWR | os.O_CREAT, 0o600)
        except FileNotFoundError:
            continue
        fcntl.flock(fd, fcntl.LOCK_EX)
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(fd), os.stat(folder / "state")):
                return fd
        os.close(fd)


def _locked_now(fd: int) -> bool:
    """Whether the lock could be had, which means that no living process has it."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
