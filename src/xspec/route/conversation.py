"""A trial's messages and tools, each serialised once however often they are sent."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from xspec.spec.canonical import canonical_bytes, digest_of


@dataclass(frozen=True, slots=True)
class Pins:
    """The digests frozen for one trial: system text, instruction, canonical tool schemas (or None)."""

    system: str
    instruction: str
    tools: str | None


class Tools:
    """Tool schemas, serialised once; one object serves every trial that has them.

    They are sent in canonical form (sorted keys), so that what the digest pins is what the model gets,
    whatever order a benchmark happened to build its schemas in.
    """

    __slots__ = ("digest", "wire")

    def __init__(self, schemas: Sequence[Mapping[str, Any]]) -> None:
        canonical = canonical_bytes(list(schemas))
        self.digest = digest_of(canonical)
        # Once through orjson: the guard compares with its spelling of a number (1e-7, not 1e-07).
        self.wire = orjson.dumps(orjson.loads(canonical))


class Conversation:
    """Messages as they will be sent. `extra` are messages that follow the instruction from the start."""

    __slots__ = ("_messages", "tools")

    def __init__(
        self,
        system: str,
        instruction: str,
        tools: Tools | None = None,
        extra: Iterable[Mapping[str, Any]] = (),
    ) -> None:
        self.tools = tools
        self._messages = bytearray(message_bytes({"role": "system", "content": system}))
        self.add({"role": "user", "content": instruction})
        for message in extra:
            self.add(message)

    def add(self, message: Mapping[str, Any]) -> None:
        """Append a message. It is serialised here and now: changing it later changes nothing."""
        self._messages += b"," + message_bytes(message)

    def body(self, opening: bytes) -> bytes:
        """The request body: `opening` (`{` and the fields that spec and member fix), messages, tools."""
        tools = () if self.tools is None else (b',"tools":', self.tools.wire)
        return b"".join((opening, b'"messages":[', self._messages, b"]", *tools, b"}"))


def message_bytes(message: Mapping[str, Any]) -> bytes:
    """JSON of one message. Text that has no UTF-8 form (a lone surrogate) gets U+FFFD in its place."""
    try:
        return orjson.dumps(message)
    except TypeError:
        return orjson.dumps(sendable(message))


def text_digest(text: str) -> str:
    """The digest of a text as it is sent."""
    return digest_of(sendable(text).encode())


def sendable(value: Any) -> Any:
    """`value` with lone surrogates replaced by U+FFFD and integers beyond 64 bits made floats."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, Mapping):
        return {sendable(key): sendable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [sendable(item) for item in value]
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**64:
        return float(value)
    return value
