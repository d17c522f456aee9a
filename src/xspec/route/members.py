"""Members of a route: which one serves a call, and at which address."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from xspec.records.rows import Place
from xspec.route.address import Address, address_of, check_base_url, default_path
from xspec.spec.canonical import canonical_bytes
from xspec.spec.members import Member
from xspec.spec.models import RouteSpec

__all__ = ["Binding", "check_base_url", "choose", "default_path", "locate"]


@dataclass(frozen=True, slots=True)
class Binding:
    """This stint's address of a member that xspec starts itself. Its settings are identity, this is not.

    `base_url` is the server's root; `path` gives the whole path of a call, already percent-encoded.
    """

    base_url: str
    path: Callable[[Place], str]


def choose(route: RouteSpec, place: Place, attempt: int) -> Member:
    """The member that serves an attempt (0 for the first): a pure function of seed and place.

    Neither `take` nor order of arrival comes into it, so a trial begun again meets the same members. With
    granularity `call` every attempt of a call goes to one member.
    """
    if route.mode == "fixed":
        return route.members[0]
    what = ["member", 1, route.seed, place.run, place.task, place.step, place.call]
    if route.granularity == "attempt":
        what.append(attempt)
    draw = int.from_bytes(hashlib.sha256(canonical_bytes(what)).digest()[:8], "big")
    return route.members[draw % len(route.members)]


def locate(member: Member, binding: Binding | None) -> Callable[[Place], Address]:
    """Where the calls of a member go. Raises UserError if its base URL cannot be meant."""
    if member.kind == "openai":
        check_base_url(member.base_url, member.path)
        fixed = address_of(member.base_url, member.path)
        return lambda place: fixed
    if binding is None:
        raise ValueError(f"member {member.name} is started by xspec, but this stint has no binding for it")
    root, path = address_of(binding.base_url, ""), binding.path
    return lambda place: root._replace(target=root.target + path(place))
