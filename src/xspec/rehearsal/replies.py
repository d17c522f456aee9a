"""The replies of the simulated model, byte for byte the same for the same request and place."""

from dataclasses import dataclass, field
from typing import Literal

import orjson

from xspec import __version__

FINGERPRINT = f"fp_rehearsal_{__version__}"
CREATED = 1_700_000_000
"""Every completion's `created`: the clock would make two replies to one request differ."""
MARK = ("x-simulated-model", "xspec-rehearsal")

Ending = Literal["whole", "reset", "close_early"]


@dataclass(frozen=True, slots=True)
class Reply:
    """What the server does about a request: wait `delay_s`, then send, and end as `ending` says.

    `whole` is an ordinary reply. `reset` sends nothing and resets the connection. `close_early` announces the
    length of `body`, sends its first `sent` bytes, and closes. A `streamed` body is events, of no announced length.
    """

    status: int
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()
    delay_s: float = 0.0
    ending: Ending = "whole"
    sent: int = field(default=0)
    streamed: bool = False


@dataclass(frozen=True, slots=True)
class Completion:
    """A chat completion: a tool call if `tool` is given, else text."""

    id: str
    model: str
    prompt_bytes: int
    text: str = ""
    tool: tuple[str, str, str] | None = None
    """Call id, tool name, arguments text."""

    def body(self) -> bytes:
        """The JSON of the reply. Token counts are bytes divided by four, rounded up."""
        message: dict[str, object] = {"role": "assistant", "content": self.text, "refusal": None}
        written = self.text
        if self.tool is not None:
            call_id, name, arguments = self.tool
            function = {"name": name, "arguments": arguments}
            message["content"] = None
            message["tool_calls"] = [{"id": call_id, "type": "function", "function": function}]
            written = name + arguments
        prompt, completion = _tokens(self.prompt_bytes), _tokens(len(written.encode()))
        finish = "stop" if self.tool is None else "tool_calls"
        return orjson.dumps(
            {
                "id": self.id,
                "object": "chat.completion",
                "created": CREATED,
                "model": self.model,
                "system_fingerprint": FINGERPRINT,
                "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": finish}],
                "usage": {
                    "prompt_tokens": prompt,
                    "completion_tokens": completion,
                    "total_tokens": prompt + completion,
                },
            }
        )


def error_body(message: str, kind: str, code: str | None = None) -> bytes:
    """An error as OpenAI-compatible servers write it."""
    return orjson.dumps({"error": {"message": message, "type": kind, "param": None, "code": code}})


def bad_request(message: str) -> Reply:
    """400: the request itself is wrong."""
    return Reply(400, error_body(message, "invalid_request_error"))


def not_found(message: str, code: str | None = None) -> Reply:
    """404: no such path, member, model or task."""
    return Reply(404, error_body(message, "invalid_request_error", code))


def _tokens(count: int) -> int:
    return max(1, -(-count // 4))
