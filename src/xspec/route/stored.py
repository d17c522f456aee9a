"""The frozen spec as it lies in memory and in the store: re-hashed before every call."""

import hashlib
import os
import time
from pathlib import Path

from xspec.errors import SpecDrift
from xspec.spec.canonical import ID_DIGITS, short_id

_RACY_S = 0.1
"""A file this fresh may change again within one clock tick, unseen by `stat`: read it again."""


class StoredSpec:
    """A spec's canonical bytes, their id, and the file that holds them."""

    def __init__(self, data: bytes, path: Path) -> None:
        self.data = data
        self.path = path
        self.id = short_id("xs", data)
        self._digest = hashlib.sha256(data).digest()
        self._seen: tuple[int, ...] | None = None

    def check(self) -> None:
        """Raise SpecDrift unless the bytes in memory still hash to the id and the file still holds them.

        The file is stat-ed each time and read again when anything about it changed. ctime is looked at too,
        because an editor or `touch -r` can put the mtime back.
        """
        live = hashlib.sha256(self.data).hexdigest()[:ID_DIGITS]
        if live != self.id[3:]:
            raise SpecDrift("spec in memory", self.id, f"xs-{live}")
        try:
            stat = os.stat(self.path)
            seen = (stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size, stat.st_ino)
            if seen == self._seen:
                return
            data = self.path.read_bytes()
        except OSError as error:
            raise SpecDrift(
                "spec file", self.id, f"unreadable ({error.strerror or type(error).__name__})"
            ) from None
        if hashlib.sha256(data).digest() != self._digest:
            raise SpecDrift("spec file", self.id, short_id("xs", data))
        settled = time.time() - max(stat.st_mtime, stat.st_ctime) > _RACY_S
        self._seen = seen if settled else None
