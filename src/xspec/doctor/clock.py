"""This machine's clock against the provider's: Retry-After dates and spans of arms are read by it."""

from collections.abc import Iterator
from email.utils import parsedate_to_datetime

from xspec.doctor.findings import Finding, note, ok
from xspec.doctor.probe import Raw

TOLERATED_S = 30.0


def clock(reply: Raw) -> Iterator[Finding]:
    """From the `Date` header, which has whole seconds; nothing if there is none."""
    try:
        skew_s = reply.at - (parsedate_to_datetime(reply.headers["date"]).timestamp() + 0.5)
    except (KeyError, ValueError, TypeError):
        return
    if abs(skew_s) <= TOLERATED_S:
        yield ok("clock", f"within {TOLERATED_S:.0f} s of the provider's")
    else:
        way = "ahead of" if skew_s > 0 else "behind"
        yield note(
            "clock",
            f"{abs(skew_s):,.0f} s {way} the provider's",
            "set it by NTP: waits that a provider asks for as a date come out wrong",
            matters=True,
        )
