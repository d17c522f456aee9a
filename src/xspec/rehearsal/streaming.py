"""The simulated model's replies as streams of server-sent events."""

from collections.abc import Iterator
from typing import Any, Literal

import orjson

Stream = Literal["no", "plain", "with_usage"]
"""Whether a reply was asked for as a stream, and with a last chunk that counts its tokens."""

_PIECE = 24
"""Characters of text or arguments in one chunk."""


def stream_asked(request: dict[str, Any]) -> Stream:
    """How the request wants its reply."""
    if not request.get("stream"):
        return "no"
    options = request.get("stream_options")
    return "with_usage" if isinstance(options, dict) and options.get("include_usage") else "plain"


def events(completion: dict[str, Any], stream: Stream) -> bytes:
    """The chunks that a plain completion becomes, the end marker last."""
    usage = completion["usage"]
    rest = {name: value for name, value in completion.items() if name not in ("choices", "usage")}
    rest["object"] = "chat.completion.chunk"

    def event(choices: list[dict[str, Any]], **more: Any) -> bytes:
        return b"data: " + orjson.dumps({**rest, "choices": choices, **more}) + b"\n\n"

    made = [event([delta]) for choice in completion["choices"] for delta in _deltas(choice)]
    if stream == "with_usage":
        made.append(event([], usage=usage))
    return b"".join((*made, b"data: [DONE]\n\n"))


def _deltas(choice: dict[str, Any]) -> Iterator[dict[str, Any]]:
    def delta(part: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {"index": choice["index"], "delta": part, "logprobs": None, "finish_reason": finish}

    message = choice["message"]
    yield delta({"role": "assistant", "content": "" if message["content"] is not None else None})
    for piece in _pieces(message["content"] or ""):
        yield delta({"content": piece})
    for index, call in enumerate(message.get("tool_calls") or ()):
        function = call["function"]
        opened = {**call, "index": index, "function": {"name": function["name"], "arguments": ""}}
        yield delta({"tool_calls": [opened]})
        for piece in _pieces(function["arguments"]):
            yield delta({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield delta({}, choice["finish_reason"])


def _pieces(text: str) -> list[str]:
    return [text[at : at + _PIECE] for at in range(0, len(text), _PIECE)]
