"""A trial's messages and tools, each serialised once however often they are sent."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import orjson

from xspec.route.body import json_text
from xspec.spec.canonical import canonical_bytes, digest_of

if TYPE_CHECKING:
    from xspec.route.lane import Lane

_DEEPEST = 50
"""Levels that are kept as data where something has to be mended. orjson writes 254 in all."""


class Content(Protocol):
    """What a call says: a Conversation, or a body that another program wrote (xspec.route.foreign)."""

    def wire(self, lane: "Lane") -> bytes:
        """The body of an attempt by this lane."""


@dataclass(frozen=True, slots=True)
class Pins:
    """The digests frozen for one trial: system text, instruction, and in canonical form tool schemas and
    response format (each None if the trial has none: then the request must not carry it).
    """

    system: str
    instruction: str
    tools: str | None
    response_format: str | None = None


class Pinned:
    """A body field that is the same in every request of a trial, serialised once.

    It is sent in canonical form (sorted keys), so that what the digest pins is what the model gets, in whatever
    order it happened to be built.
    """

    __slots__ = ("digest", "wire")

    def __init__(self, value: Any) -> None:
        canonical = canonical_bytes(value)
        self.digest = digest_of(canonical)
        # Once through orjson: the guard compares with its spelling of a number (1e-7, not 1e-07).
        self.wire = orjson.dumps(orjson.loads(canonical))


class Tools(Pinned):
    """Tool schemas; one object serves every trial that has them."""

    __slots__ = ()

    def __init__(self, schemas: Sequence[Mapping[str, Any]]) -> None:
        super().__init__(list(schemas))


class ResponseFormat(Pinned):
    """What the reply has to be: `{"type": "json_schema", …}`."""

    __slots__ = ()

    def __init__(self, value: Mapping[str, Any]) -> None:
        super().__init__(dict(value))


class Conversation:
    """Messages as they will be sent. `extra` are messages that follow the instruction from the start."""

    __slots__ = ("_messages", "response_format", "tools")

    def __init__(
        self,
        system: str,
        instruction: str,
        tools: Tools | None = None,
        extra: Iterable[Mapping[str, Any]] = (),
        *,
        response_format: ResponseFormat | None = None,
    ) -> None:
        self.tools = tools
        self.response_format = response_format
        self._messages = bytearray(message_bytes({"role": "system", "content": system}))
        self.add({"role": "user", "content": instruction})
        for message in extra:
            self.add(message)

    def add(self, message: Mapping[str, Any]) -> None:
        """Append a message. It is serialised here and now: changing it later changes nothing."""
        self._messages += b"," + message_bytes(message)

    def wire(self, lane: "Lane") -> bytes:
        """The body of an attempt by this lane."""
        return self.body(lane.opening)

    def body(self, opening: bytes) -> bytes:
        """The request body: `opening` (`{` and the fields that spec and member fix), messages, tools or format."""
        tools = () if self.tools is None else (b',"tools":', self.tools.wire)
        reply = () if self.response_format is None else (b',"response_format":', self.response_format.wire)
        return b"".join((opening, b'"messages":[', self._messages, b"]", *tools, *reply, b"}"))


def message_bytes(message: Mapping[str, Any]) -> bytes:
    """JSON of one message. Text that has no UTF-8 form (a lone surrogate) gets U+FFFD in its place."""
    try:
        return orjson.dumps(message)
    except TypeError:
        return orjson.dumps(sendable(message))


def text_digest(text: str) -> str:
    """The digest of a text as it is sent."""
    return digest_of(sendable(text).encode())


def sendable(value: Any, depth: int = 0) -> Any:
    """`value` as orjson can write it, `depth` levels deep in something else: lone surrogates are replaced by U+FFFD;
    integers beyond 64 bits, numbers beyond a double and what is nested too deeply become their JSON text.
    """
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, Mapping | list | tuple) and depth >= _DEEPEST:
        return sendable(json_text(value))
    if isinstance(value, Mapping):
        return {sendable(key): sendable(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [sendable(item, depth + 1) for item in value]
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**64:
        return json.dumps(value)
    if isinstance(value, float) and not math.isfinite(value):
        return json.dumps(value)
    return value
