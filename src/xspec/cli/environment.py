"""The environment of a command: `.env` is read if it is there, and stored nowhere."""

import os
from pathlib import Path

from xspec.errors import UserError


def load_dotenv(path: Path = Path(".env")) -> None:
    """Sets the variables of `.env` that are not set already; `export` and `${OTHER}` are understood."""
    if not path.is_file():
        return
    from dotenv import dotenv_values
    from dotenv.parser import parse_stream

    try:
        with path.open(encoding="utf-8") as file:
            for binding in parse_stream(file):
                if binding.error:
                    raise UserError(f"{path} line {binding.original.line}: not understood; write NAME=value")
        values = dotenv_values(path, interpolate=True)
    except (OSError, UnicodeDecodeError):
        raise UserError(
            f"{path.absolute()} cannot be read as UTF-8 text; it should hold lines like NAME=value"
        ) from None
    for name, value in values.items():
        if value is not None:
            os.environ.setdefault(name, value)
