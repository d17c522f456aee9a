"""Drift: a reply that comes from something other than what was pinned, or than what answered first."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from xspec.spec.members import Member
from xspec.spec.models import DriftPolicy, RouteSpec

Kind = Literal["served_model", "upstream", "fingerprint"]
KINDS: tuple[Kind, ...] = ("served_model", "upstream", "fingerprint")

References = Mapping[str, Mapping[str, str]]
"""Member → kind → what a reply is compared with: what earlier stints settled, from their lock."""

Settle = Callable[[str, Kind, str], None]
"""Told (member, kind, value) once a reply has settled a reference, so that it can go into the lock."""

_DATED = re.compile(r"[-@:](?:20\d\d-?[01]\d-?[0-3]\d|[01]\d[0-3]\d|2[3-9][01]\d|00\d)")
"""What turns an alias into a dated id: `-2024-08-06`, `-20240806`, `-0613`, `-2411`, `-001`."""


@dataclass(frozen=True, slots=True)
class Served:
    """What a reply says it comes from. None means unknown: neither drift nor proof that nothing changed."""

    model: str | None
    upstream: str | None
    fingerprint: str | None

    def get(self, kind: Kind) -> str | None:
        return {"served_model": self.model, "upstream": self.upstream, "fingerprint": self.fingerprint}[kind]


@dataclass(frozen=True, slots=True)
class Drift:
    """`seen` is everything that differs, `invalidating` the part that the policy says spoils the trial."""

    seen: list[str]
    invalidating: list[str]


class DriftWatch:
    """Compares every reply with its member's references. Members differ from one another by design."""

    def __init__(self, route: RouteSpec, policy: DriftPolicy, references: References, settle: Settle) -> None:
        self._policy = {kind: getattr(policy, kind) for kind in KINDS}
        self._settle = settle
        self._references: dict[tuple[str, Kind], str] = {}
        self._loose = {
            member.name for member in route.members if route.mode == "floating" and not pins_upstream(member)
        }
        for member in route.members:
            for kind in KINDS:
                reference = references.get(member.name, {}).get(kind)
                if kind == "served_model":
                    reference = _first_reference(member, reference)
                if reference is not None:
                    self._references[member.name, kind] = reference

    def compare(self, member: str, served: Served) -> Drift:
        """What is not as it was. A first reply settles what has no reference yet."""
        seen: list[str] = []
        invalidating: list[str] = []
        for kind in KINDS:
            got = served.get(kind)
            reference = self._references.get((member, kind))
            if got is None or got == reference or (kind == "upstream" and member in self._loose):
                continue
            if reference is None or (kind == "served_model" and is_dated(reference, got)):
                self._references[member, kind] = got
                self._settle(member, kind, got)
                continue
            note = f"{kind}: {reference} -> {got}"
            seen.append(note)
            if self._policy[kind] == "invalidate":
                invalidating.append(note)
        return Drift(seen, invalidating)


def is_dated(alias: str, served: str) -> bool:
    """Whether `served` is `alias` with a date: what the alias stands for at the time."""
    return served.startswith(alias) and _DATED.fullmatch(served[len(alias) :]) is not None


def names_a_date(model: str) -> bool:
    """Whether a model id ends in a date or version number, a tag such as `:free` after it left aside."""
    return re.search(f"(?:{_DATED.pattern})(?::[^:]*)?$", model) is not None


def pins_upstream(member: Member) -> bool:
    """Whether the member's extra body ties a router to one upstream. `order` alone does not."""
    provider = ((member.extra_body if member.kind == "openai" else None) or {}).get("provider")
    if not isinstance(provider, Mapping):
        return False
    only = provider.get("only")
    return isinstance(only, list | tuple) and len(only) == 1 and provider.get("allow_fallbacks") is False


def _first_reference(member: Member, settled: str | None) -> str | None:
    # The simulated model answers to its own name, so a faulty first reply must not settle anything.
    expected = member.expect_served or (member.model if member.kind != "openai" else None)
    if expected is None or (settled is not None and is_dated(expected, settled)):
        return settled
    return expected
