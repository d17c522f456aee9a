"""A streamed reply (server-sent events): passed on event by event, and read on the way.

Only whole events are passed on, so that a key which a provider echoes is found in one piece.
"""

import asyncio
from collections.abc import Iterator
from typing import Any, Protocol

import httpx2

from xspec.route.drift import Served
from xspec.route.keys import without_key
from xspec.route.reply import Completion, NotACompletion, count_of, error_of, read_json, text_of

DONE = b"[DONE]"


class Relay(Protocol):
    """Where a streamed reply goes on to. `started` once a first piece was given to it: then nothing is tried again."""

    started: bool

    async def write(self, events: bytes) -> None:
        """Take whole events; returns when there is room for more."""


def is_event_stream(response: httpx2.Response) -> bool:
    """Whether this is the stream that was asked for, rather than a refusal or a reply in one piece."""
    kind = str(response.headers.get("content-type", ""))
    return response.status_code // 100 == 2 and kind.lower().startswith("text/event-stream")


async def pass_on(
    response: httpx2.Response, relay: Relay, key: str, limit: asyncio.Timeout, silence_s: float
) -> Completion | NotACompletion:
    """Passes the events on until the stream ends; what they add up to, or why they are no completion.

    `limit` is set anew for each piece and stands still while the relay takes one: a slow reader is not the
    provider's fault. Raises httpx2.TransportError where the connection broke, TimeoutError after `silence_s`.
    """
    loop = asyncio.get_running_loop()
    reading = Reading()
    left = b""
    async for piece in response.aiter_raw():
        left += piece
        end = _end_of_events(left)
        if end:
            events, left = left[:end], left[end:]
            events = without_key(events, key)
            bad = reading.read(events)
            if bad is not None and not relay.started:
                return bad
            limit.reschedule(None)
            await relay.write(events)
            if bad is not None:
                return bad
        limit.reschedule(loop.time() + silence_s)
    if left.strip():
        return NotACompletion("a stream that ends within an event")
    return reading.completion()


def _end_of_events(data: bytes) -> int:
    """Where the last whole event ends: after an empty line, in whichever of the allowed spellings."""
    ends = (data.rfind(b"\n\n") + 2, data.rfind(b"\r\n\r\n") + 4, data.rfind(b"\r\r") + 2)
    return max((end for end, size in zip(ends, (2, 4, 2), strict=True) if end >= size), default=0)


def _data_of(events: bytes) -> Iterator[bytes]:
    """The data of each event, whose lines belong together."""
    lines: list[bytes] = []
    for line in (*events.splitlines(), b""):
        if line.startswith(b"data:"):
            lines.append(line[5:])
        elif not line and lines:
            yield b"\n".join(lines).strip()
            lines = []


class Reading:
    """Adds up the chunks of a stream: the message of each choice, usage, and who served it."""

    def __init__(self) -> None:
        self._choices: dict[int, _Choice] = {}
        self._usage: dict[str, Any] = {}
        self._served: dict[str, str | None] = {"model": None, "provider": None, "system_fingerprint": None}
        self._done = False

    def read(self, events: bytes) -> NotACompletion | None:
        """Takes in whole events; what is wrong with them, or None."""
        for data in _data_of(events):
            if data == DONE:
                self._done = True
                continue
            try:
                chunk = read_json(data)
            except NotACompletion as bad:
                return NotACompletion(f"a chunk of {bad}", body=data)
            if not isinstance(chunk, dict) or chunk.get("error"):
                return error_of(chunk, "a chunk", data)
            self._add(chunk)
        return None

    def completion(self) -> Completion | NotACompletion:
        """What the whole stream was."""
        ended = all(choice.finish is not None for choice in self._choices.values())
        if not self._choices or not (self._done or ended):
            return NotACompletion("a stream that ends before its reply does")
        first, *others = (self._choices[index] for index in sorted(self._choices))
        return Completion(
            message=first.message(),
            finish_reason=first.finish,
            prompt_tokens=count_of(self._usage.get("prompt_tokens")),
            completion_tokens=count_of(self._usage.get("completion_tokens")),
            served=Served(
                self._served["model"], self._served["provider"], self._served["system_fingerprint"]
            ),
            others=tuple(choice.message() for choice in others),
        )

    def _add(self, chunk: dict[str, Any]) -> None:
        for name, known in self._served.items():
            if known is None:
                self._served[name] = text_of(chunk.get(name))
        if isinstance(chunk.get("usage"), dict):
            self._usage = chunk["usage"]
        choices = chunk.get("choices")
        for given in choices if isinstance(choices, list) else ():
            if isinstance(given, dict):
                index = given.get("index")
                choice = self._choices.setdefault(index if isinstance(index, int) else 0, _Choice())
                choice.add(given)


class _Choice:
    """One choice of a streamed reply, in pieces."""

    def __init__(self) -> None:
        self.finish: str | None = None
        self._content: list[str] = []
        self._refusal: list[str] = []
        self._calls: dict[int, dict[str, Any]] = {}

    def add(self, given: dict[str, Any]) -> None:
        self.finish = text_of(given.get("finish_reason")) or self.finish
        delta = given.get("delta")
        if not isinstance(delta, dict):
            return
        for name, parts in (("content", self._content), ("refusal", self._refusal)):
            if isinstance(delta.get(name), str):
                parts.append(delta[name])
        calls = delta.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, dict):
                self._add_call(call)

    def _add_call(self, call: dict[str, Any]) -> None:
        index = call.get("index")
        made = self._calls.setdefault(
            index if isinstance(index, int) else 0, {"id": "", "name": [], "arguments": []}
        )
        made["id"] = text_of(call.get("id")) or made["id"]
        function = call.get("function")
        for name in ("name", "arguments"):
            if isinstance(function, dict) and isinstance(function.get(name), str):
                made[name].append(function[name])

    def message(self) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": "".join(self._content) or None}
        if self._refusal:
            message["refusal"] = "".join(self._refusal)
        if self._calls:
            message["tool_calls"] = [
                {
                    "id": call["id"],
                    "type": "function",
                    "function": {"name": "".join(call["name"]), "arguments": "".join(call["arguments"])},
                }
                for _, call in sorted(self._calls.items())
            ]
        elif message["content"] is None:
            message["content"] = ""
        return message
