"""The journal of a stint: append-only lines of JSON, the only truth about what happened."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import orjson

from xspec.errors import DiskFailed, StoreError
from xspec.records.rows import Row


class Journal:
    """Appends rows to a new file. Each row is one write, so a kill tears at most the last line.

    `secrets` are never written: rows of a gateway hold texts of another program, which knows one of them.
    """

    def __init__(self, path: Path, secrets: Iterable[str] = ()) -> None:
        self.path = path
        self._secrets = [orjson.dumps(secret)[1:-1] for secret in secrets]
        self._broken = False
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)

    def append(self, row: Row) -> None:
        """Raises DiskFailed if the disk takes less than the whole row; what it took is a torn tail."""
        line = orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)
        for secret in self._secrets:
            if secret in line:
                line = line.replace(secret, b"[key]")
        if self._broken:
            raise DiskFailed(f"cannot write to {self.path}", "an earlier row was torn")
        try:
            written = os.write(self._fd, line)
        except OSError as error:
            self._broken = True
            raise DiskFailed(f"cannot write to {self.path}", error.strerror or str(error)) from None
        if written != len(line):
            self._broken = True
            raise DiskFailed(f"cannot write to {self.path}", f"the disk took {written} of {len(line)} bytes")

    def close(self) -> None:
        if self._fd >= 0:
            os.fsync(self._fd)
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def read_journal(path: Path, kinds: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """The rows of the named kinds, in order. A torn last line is dropped; a broken one before it is a StoreError."""
    wanted = tuple(f'{{"kind":"{kind}",'.encode() for kind in kinds)
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                return
            if line.startswith(wanted):
                try:
                    yield orjson.loads(line)
                except orjson.JSONDecodeError:
                    raise StoreError(f"{path} line {number} is not JSON: the journal was changed") from None
            elif not line.startswith(b'{"kind":"'):
                raise StoreError(f"{path} line {number} is no row: the journal was changed")


@contextmanager
def rows_in_form(path: Path) -> Iterator[None]:
    """Around what takes the rows of a journal apart: a row that lacks a field, or has another kind of value in it, was
    not written by xspec. Raises StoreError; checking every field of millions of rows beforehand would cost more than
    all else."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise StoreError(
            f"{path} has a row of another form ({type(error).__name__}: {error}): the journal was changed"
        ) from error
