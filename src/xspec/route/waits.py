"""How long a provider asks to be left alone, as its headers say it."""

import math
import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

_PIECE = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_UNIT_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_RESET = "x-ratelimit-reset"
_REMAINING = "x-ratelimit-remaining"


def asked_wait(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds to wait, or None if the headers do not say (or say zero, or something past).

    In order: `retry-after-ms`, `retry-after` (seconds or an HTTP date), `x-ratelimit-reset…`. `headers` has
    lower-case names; `now` is seconds since the epoch.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    candidates = (
        None if milliseconds is None else milliseconds / 1000,
        _retry_after(headers.get("retry-after"), now),
        _reset(headers, now),
    )
    return next((wait for wait in candidates if wait is not None and 0 < wait < math.inf), None)


def _retry_after(value: str | None, now: float) -> float | None:
    seconds = _number(value)
    if seconds is not None or value is None:
        return seconds
    try:
        return parsedate_to_datetime(value).timestamp() - now
    except (ValueError, TypeError, OverflowError):
        return None


def _reset(headers: Mapping[str, str], now: float) -> float | None:
    """The longest reset of the limits that are used up; if something remains of all, the shortest."""
    used_up: list[float] = []
    others: list[float] = []
    for name, value in headers.items():
        if name.startswith(_RESET):
            wait = _duration(value, now)
            if wait is not None:
                remains = _number(headers.get(_REMAINING + name.removeprefix(_RESET)))
                (others if remains is not None and remains > 0 else used_up).append(wait)
    if used_up:
        return max(used_up)
    return min(others, default=None)


def _duration(value: str, now: float) -> float | None:
    """`6m0s`, `20ms`, plain seconds, or a point in time: seconds or milliseconds since the epoch."""
    pieces = _PIECE.findall(value)
    if pieces and "".join(n + unit for n, unit in pieces) == value.strip():
        return sum(float(n) * _UNIT_S[unit] for n, unit in pieces)
    number = _number(value)
    if number is None:
        return None
    if number > 1e11:
        return number / 1000 - now
    return number - now if number > 1e9 else number


def _number(value: str | None) -> float | None:
    try:
        number = float(value) if value is not None else None
    except ValueError:
        return None
    return number if number is not None and math.isfinite(number) else None
