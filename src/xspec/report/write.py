"""A report on disk: whole or not at all."""

import os
import tempfile
from pathlib import Path

from xspec.errors import UserError


def write_text(path: Path, text: str) -> None:
    """Write beside `path` and move it there, so that a reader never sees half a report.

    Raises UserError where nothing can be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, text)
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror or error}") from None


def _replace(path: Path, text: str) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(temporary, 0o644)  # mkstemp's 0600 would hide the report from the user's colleagues
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
