"""Files that a user names: read whole, but never without a bound, and never from what is no file."""

from pathlib import Path

from xspec.errors import UserError


def read_user_file(path: str, limit: int, what: str) -> bytes:
    """The bytes of a regular file of at most `limit` bytes. Raises UserError that begins with `what` and the path."""
    file = Path(path).expanduser()
    try:
        if file.exists() and not file.is_file():
            raise UserError(f"{what} {path} is no regular file")
        with file.open("rb") as opened:
            data = opened.read(limit + 1)
    except (OSError, ValueError) as error:
        raise UserError(f"{what} {path}: {getattr(error, 'strerror', None) or error}") from None
    if len(data) > limit:
        raise UserError(f"{what} {path} has more than {limit} bytes; that cannot be meant")
    return data
