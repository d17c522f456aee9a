"""What a provider's headers say about its limits: how long to leave it alone, and what it still allows."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

_PIECE = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_UNIT_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_LIMIT = re.compile(r"((?:x-)?ratelimit-)(remaining|reset)(.*)")
"""OpenAI and most others: `x-ratelimit-remaining-requests`; IETF's draft: `ratelimit-remaining`."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """What is left of the scarcest limit: about so many more requests, and the seconds until it is whole again."""

    requests: int
    reset_s: float


def allowance(headers: Mapping[str, str], now: float, tokens: int) -> Allowance | None:
    """What the headers of a good reply say is left, or None if they name no limit with its reset.

    A limit on tokens allows as many more requests as this reply's `tokens` go into it. Of several limits the one
    that allows fewest counts, of equals the one that takes longest. `headers` has lower-case names; `now` is seconds
    since the epoch.
    """
    found = [
        Allowance(int(max(left, 0) // (max(tokens, 1) if "token" in unit else 1)), wait)
        for unit, left, wait in _limits(headers, now)
        if left is not None and wait is not None and 0 < wait < math.inf
    ]
    return min(found, key=lambda one: (one.requests, -one.reset_s), default=None)


def asked_wait(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds to wait, or None if the headers do not say (or say zero, or something past).

    In order: `retry-after-ms`, `retry-after` (seconds or an HTTP date), `x-ratelimit-reset…`
    or `ratelimit-reset`. `headers` has
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
    limits = [(left, wait) for _, left, wait in _limits(headers, now) if wait is not None]
    used_up = [wait for left, wait in limits if left is None or left <= 0]
    return max(used_up) if used_up else min((wait for _, wait in limits), default=None)


def _limits(headers: Mapping[str, str], now: float) -> list[tuple[str, float | None, float | None]]:
    """Name, what remains and seconds until the reset, of each limit that the headers tell of."""
    limits: dict[tuple[str, str], dict[str, str]] = {}
    for name, value in headers.items():
        match = _LIMIT.fullmatch(name) if "ratelimit-re" in name else None
        if match is not None:
            limits.setdefault((match[1], match[3]), {})[match[2]] = value
    return [
        (unit, _number(said.get("remaining")), _duration(said["reset"], now) if "reset" in said else None)
        for (_, unit), said in limits.items()
    ]


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
