"""What the replies prove about where they came from: verified, drifted, unverifiable or unknown. Never just "ok".

verified       every reply named the same thing, and the name can only mean that thing
drifted        a reply named another thing than the one before it, or than the one expected
unverifiable   nothing that comes back could tell a change: an alias echoed, an upstream never named, a gateway
               that picks a channel of its own
unknown        there was no reply, or some replies did not say
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from xspec.counted import counted
from xspec.route.drift import KINDS, Kind, is_dated, names_a_date, pins_upstream
from xspec.spec.members import Member
from xspec.spec.models import RouteSpec

State = Literal["verified", "drifted", "unverifiable", "unknown"]

AGGREGATOR_ID = "x-oneapi-request-id"
"""Sent by one-api and its kin, which serve a call by any channel of the key's group and do not say by which."""

_SAY_SO = "if that is what you mean, set provider.expect_served"
_GATEWAY = "a one-api style gateway, which picks a channel for each call and does not say which"


@dataclass(frozen=True, slots=True)
class Revealed:
    """What a usable reply says about its origin. None: it does not say.

    `drift` names the kinds that differed; `counted` is false of a reply that did not say how many tokens it took.
    """

    member: str
    served_model: str | None
    upstream: str | None
    fingerprint: str | None
    aggregated: bool
    drift: tuple[str, ...] = ()
    counted: bool = True


@dataclass(frozen=True, slots=True)
class Verification:
    """What is known of one kind (served model, upstream, fingerprint) at one member, and why."""

    member: str
    kind: Kind
    state: State
    why: str

    def __str__(self) -> str:
        return f"{self.kind.replace('_', ' ')} {self.state} ({self.why})"


def revealed(attempt: Mapping[str, Any]) -> Revealed | None:
    """What an attempt's row reveals (as the journal has it); None if it brought no usable reply."""
    if attempt["error"] is not None:
        return None
    return Revealed(
        attempt["member"],
        attempt["served_model"],
        attempt["upstream"],
        attempt["fingerprint"],
        AGGREGATOR_ID in attempt["request_ids"],
        kinds_of(attempt["drift"]),
        attempt["prompt_tokens"] is not None or attempt["completion_tokens"] is not None,
    )


def kinds_of(notes: Sequence[str]) -> tuple[str, ...]:
    """The kinds that drift notes (`served_model: a -> b`) are about."""
    return tuple(sorted({note.partition(":")[0] for note in notes}))


def verify(route: RouteSpec, replies: Mapping[Revealed, int]) -> list[Verification]:
    """For each member and kind what its replies prove. `replies` counts the usable replies that revealed the same."""
    found = []
    for member in route.members:
        own = Counter({reply: n for reply, n in replies.items() if reply.member == member.name})
        found += [Verification(member.name, kind, *_state(member, kind, own)) for kind in KINDS]
    return found


def _state(member: Member, kind: Kind, replies: Counter[Revealed]) -> tuple[State, str]:
    total = replies.total()
    if not total:
        return "unknown", "no usable reply"
    values: Counter[str | None] = Counter()
    for reply, n in replies.items():
        values[getattr(reply, kind)] += n
    silent = values.pop(None, 0)
    names = ", ".join(sorted(str(value) for value in values)[:3])
    drifted = sum(n for reply, n in replies.items() if kind in reply.drift)
    if drifted:
        return "drifted", f"{drifted} of {_replies(total)} differed: {names}"
    if kind == "upstream" and any(reply.aggregated for reply in replies):
        return "unverifiable", _GATEWAY
    if silent == total:
        return ("unknown", "no reply names one") if kind == "fingerprint" else ("unverifiable", "never named")
    if silent:
        return "unknown", f"{silent} of {_replies(total)} did not say"
    if member.kind != "openai":
        return "verified", f"{names} in {_replies(total)}; xspec itself started it"
    if any(reply.aggregated for reply in replies):
        return "unverifiable", _GATEWAY
    if len(values) > 1:
        pinned = "" if kind != "upstream" or pins_upstream(member) else "; the member pins none"
        return "unverifiable", f"{len(values)} of them: {names}{pinned}"
    if kind == "served_model" and names == member.model and not names_a_date(names):
        return "unverifiable", f"{names} in {_replies(total)}, the very alias that was asked for"
    if kind == "served_model" and not member.expect_served and not is_asked_for(member.model, names):
        return "drifted", f"{names} in {_replies(total)}, where {member.model} was asked for: {_SAY_SO}"
    return "verified", f"{names} in {_replies(total)}"


def is_asked_for(asked: str, served: str) -> bool:
    """Whether a served id is the one asked for: itself, with a date, or with a vendor's prefix on either side."""
    plain_asked, plain_served = asked.rpartition("/")[2], served.rpartition("/")[2]
    return plain_served == plain_asked or is_dated(plain_asked, plain_served)


def _replies(total: int) -> str:
    return counted(total, "reply")
