"""The guard: an outgoing request, whole, against the frozen spec, on every attempt, just before the wire.

It is built from the spec's bytes alone and trusts nothing of what built the request: it works out for itself
which member the attempt belongs to and what that member's request has to be.
"""

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import httpx2
import orjson

from xspec.errors import SpecDrift
from xspec.records.rows import Place
from xspec.route.address import DEFAULT_PORTS, Address
from xspec.route.body import ABSENT, brief, compare_fields, fixed_fields, parse
from xspec.route.conversation import Pins
from xspec.route.foreign import Observed, check_foreign
from xspec.route.keys import fingerprint
from xspec.route.members import choose
from xspec.route.stored import StoredSpec
from xspec.spec.canonical import canonical_bytes, digest_of
from xspec.spec.models import ExperimentSpec

HEADERS = {
    b"accept": b"application/json",
    b"accept-encoding": b"identity",
    b"authorization": None,
    b"connection": b"keep-alive",
    b"content-length": None,
    b"content-type": b"application/json",
    b"host": None,
    b"user-agent": None,
}
"""Headers that may leave, and their values where only one will do; `x-stainless-…` may too."""

_NEEDED = (b"authorization", b"content-length", b"content-type", b"host")
_ROLES = ("user", "assistant", "tool")
_DIGESTS = 256


@dataclass(frozen=True, slots=True)
class Sending:
    """What the transport must know about the request that is about to pass it."""

    place: Place
    attempt: int
    pins: Pins | Observed


SENDING: ContextVar[Sending | None] = ContextVar("xspec_sending", default=None)
"""The attempt that the running task is sending. A request without one was not made by a Route."""


class Guard:
    """Compares requests with the spec. `fingerprints` and `addresses` are by member name.

    `also` are body fields that have to be there besides the spec's: doctor asks whether streaming is offered.
    """

    def __init__(
        self,
        stored: StoredSpec,
        spec: ExperimentSpec,
        addresses: Mapping[str, Callable[[Place], Address]],
        fingerprints: Mapping[str, str],
        also: Mapping[str, Any] | None = None,
    ) -> None:
        self._stored = stored
        self._route = spec.route
        self._addresses = dict(addresses)
        self._fingerprints = dict(fingerprints)
        self._fixed = {m.name: {**fixed_fields(m, spec.sampling), **(also or {})} for m in spec.route.members}
        self._digests: dict[bytes, str] = {}

    def check(self, request: httpx2.Request, body: bytes) -> None:
        """Raise SpecDrift naming the first thing about this request that is not as frozen."""
        sending = SENDING.get()
        if sending is None:
            raise SpecDrift("request", "an attempt of this route", "a request that no attempt made")
        self._stored.check()
        member = choose(self._route, sending.place, sending.attempt)
        address = self._addresses[member.name](sending.place)
        check_address(request, address)
        check_headers(request, address, len(body), self._fingerprints[member.name])
        pins = sending.pins
        if isinstance(pins, Observed):
            check_foreign(body, self._fixed[member.name])
            return
        live = parse(body)
        pinned = {"tools": pins.tools, "response_format": pins.response_format}
        fixed, there = self._fixed[member.name], {name: pin is not None for name, pin in pinned.items()}
        # A member's extra body may hold a response format of its own, which is then fixed like the rest of it.
        compare_fields(live, fixed, {name: has for name, has in there.items() if has or name not in fixed})
        _check_messages(live["messages"], pins)
        for name, frozen in pinned.items():
            if frozen is not None:
                digest = self._digest(live[name])
                if digest != frozen:
                    raise SpecDrift(f"body.{name}", frozen, digest)

    def _digest(self, value: Any) -> str:
        # Canonical bytes cost a hundred times orjson's, so they are made once for each distinct wire form.
        # The form itself is the key: the lookup compares it byte by byte.
        wire = orjson.dumps(value)
        digest = self._digests.get(wire)
        if digest is None:
            if len(self._digests) >= _DIGESTS:
                self._digests.clear()
            digest = self._digests[wire] = digest_of(canonical_bytes(value))
        return digest


def check_address(request: httpx2.Request, address: Address, method: str = "POST") -> None:
    """Raise SpecDrift unless the request goes to `address`, whole."""
    if request.method != method:
        raise SpecDrift("method", method, request.method)
    url = request.url
    scheme = url.scheme
    live = (
        scheme,
        url.raw_host.decode("ascii", "replace"),
        url.port or DEFAULT_PORTS.get(scheme),
        url.raw_path,
    )
    frozen = (address.scheme, address.host, address.port, address.target.encode())
    if live != frozen:
        for field, was, now in zip(("scheme", "host", "port", "path and query"), frozen, live, strict=True):
            if was != now:
                raise SpecDrift(field, was, now)
    # An extension may replace the request line's target or the TLS name behind the URL's back.
    for extension in request.extensions.keys() - {"timeout"}:
        raise SpecDrift(f"request extension {extension}", ABSENT, "present")


def check_headers(request: httpx2.Request, address: Address, length: int | None, key: str) -> None:
    """Raise SpecDrift unless the headers are those of a request of ours. `length` is None if it has no body."""
    live: dict[bytes, bytes] = {}
    for raw, value in request.headers.raw:
        name = raw.lower()
        # Values of unexpected headers are not shown: they are where other keys travel.
        if name not in HEADERS and not name.startswith(b"x-stainless-"):
            raise SpecDrift(f"header {name.decode('latin-1')}", ABSENT, "present")
        if name in live:
            raise SpecDrift(f"header {name.decode('latin-1')}", "once", "twice")
        live[name] = value
        frozen = HEADERS.get(name)
        if frozen is not None and value != frozen:
            raise SpecDrift(f"header {name.decode()}", frozen.decode(), value.decode("latin-1"))
    for name in _NEEDED if length is not None else (b"authorization", b"host"):
        if name not in live:
            raise SpecDrift(f"header {name.decode()}", "present", ABSENT)
    if live[b"host"] != address.authority.encode():
        raise SpecDrift("header host", address.authority, live[b"host"].decode("latin-1"))
    if length is not None and live[b"content-length"] != b"%d" % length:
        raise SpecDrift("header content-length", length, live[b"content-length"].decode("latin-1"))
    scheme, _, bearer = live[b"authorization"].decode("latin-1").partition(" ")
    if scheme != "Bearer":
        raise SpecDrift("header authorization", "the Bearer scheme", "another scheme")
    if fingerprint(bearer) != key:
        raise SpecDrift("key", key, fingerprint(bearer))


def _check_messages(messages: Any, pins: Pins) -> None:
    if type(messages) is not list or len(messages) < 2:
        raise SpecDrift("body.messages", "a system message and the instruction", brief(messages))
    for index, role, frozen in ((0, "system", pins.system), (1, "user", pins.instruction)):
        message = messages[index]
        if type(message) is not dict or message.get("role") != role:
            raise SpecDrift(f"body.messages[{index}].role", role, brief(_role(message)))
        content = message.get("content")
        if type(content) is not str or len(message) != 2:
            raise SpecDrift(f"body.messages[{index}]", "role and content, a text", brief(sorted(message)))
        digest = digest_of(content.encode())
        if digest != frozen:
            raise SpecDrift(f"body.messages[{index}].content", frozen, digest)
    for index in range(2, len(messages)):
        if _role(messages[index]) not in _ROLES:
            raise SpecDrift(
                f"body.messages[{index}].role", " or ".join(_ROLES), brief(_role(messages[index]))
            )


def _role(message: Any) -> Any:
    return message.get("role") if type(message) is dict else None
