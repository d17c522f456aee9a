"""Reading a reply: the message and what the provider says about how it was made."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

import orjson

from xspec.route.conversation import sendable
from xspec.route.drift import Served

_REQUEST_IDS = ("x-request-id", "x-oneapi-request-id", "apim-request-id", "request-id", "cf-ray")
_UPSTREAMS = ("x-litellm-model-id", "x-litellm-model-api-base")
_SHORT = 200


class NotACompletion(Exception):
    """A 2xx whose body is not a chat completion. `status` is set if it is an error reply in disguise.

    `body` is the chunk of a stream that says so.
    """

    def __init__(self, why: str, status: int | None = None, body: bytes = b"") -> None:
        super().__init__(why)
        self.status = status
        self.body = body


@dataclass(frozen=True, slots=True)
class Completion:
    """A usable reply. None means the provider did not say. `others` are the messages of choices after the first."""

    message: dict[str, Any]
    finish_reason: str | None
    prompt_tokens: int | None
    completion_tokens: int | None
    served: Served
    others: tuple[dict[str, Any], ...] = ()

    def named_by(self, headers: Mapping[str, str]) -> "Completion":
        """The same, with the upstream from the headers if the reply itself did not name it."""
        upstream = self.served.upstream or _upstream_of(headers)
        return replace(self, served=replace(self.served, upstream=upstream))


@dataclass(frozen=True, slots=True)
class Reply:
    """What a call brings back. `drift` holds only what the spec's policy says invalidates the trial.

    `attempts` counts the HTTP tries, `waited_s` the seconds between and before them, and `request_digest`
    names the body that was answered. `others` are the messages of choices after the first; `body` is the reply as it
    came, empty if it was streamed, and `content_type` what it said it is.
    """

    message: dict[str, Any]
    finish_reason: str | None
    prompt_tokens: int | None
    completion_tokens: int | None
    attempts: int
    waited_s: float
    request_digest: str
    served_model: str | None
    member: str
    drift: list[str] = field(default_factory=list)
    others: tuple[dict[str, Any], ...] = ()
    content_type: str = ""
    body: bytes = b""


def read_completion(body: bytes, headers: Mapping[str, str]) -> Completion:
    """Raises NotACompletion that says what is missing."""
    data = read_json(body)
    if not isinstance(data, dict):
        raise NotACompletion(f"a JSON {type(data).__name__} instead of an object")
    choices = data.get("choices")
    if not isinstance(choices, list) or not choices:
        raise error_of(data, "no choices")
    choice = choices[0]
    message = choice.get("message") if isinstance(choice, dict) else None
    if isinstance(choice, dict) and choice.get("finish_reason") == "error":
        raise error_of(choice, "a choice that ended in an error")
    if not isinstance(message, dict):
        raise NotACompletion("a choice without a message")
    try:
        # It will be sent back within a body, and stand in a row: what cannot be written so deep is no message.
        orjson.dumps([[message]])
    except TypeError as error:
        raise NotACompletion(f"a message that cannot be sent back: {error}") from None
    usage = data.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    return Completion(
        message=message,
        finish_reason=text_of(choice.get("finish_reason")),
        prompt_tokens=count_of(usage.get("prompt_tokens")),
        completion_tokens=count_of(usage.get("completion_tokens")),
        served=Served(
            model=text_of(data.get("model")),
            upstream=text_of(data.get("provider")) or _upstream_of(headers),
            fingerprint=text_of(data.get("system_fingerprint")),
        ),
        others=tuple(map(_message_of, choices[1:])) if len(choices) > 1 else (),
    )


def request_ids(headers: Mapping[str, str]) -> dict[str, str]:
    """The names under which the provider and what stands before it will find this request again."""
    return {name: headers[name][:_SHORT] for name in _REQUEST_IDS if headers.get(name)}


def _upstream_of(headers: Mapping[str, str]) -> str | None:
    return next((headers[h] for h in _UPSTREAMS if headers.get(h)), None)


def _message_of(choice: Any) -> dict[str, Any]:
    message = choice.get("message") if isinstance(choice, dict) else None
    return message if isinstance(message, dict) else {}


def read_json(body: bytes) -> Any:
    """A reply's JSON. Raises NotACompletion if it is none."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        pass
    # Models do write half of a surrogate pair, and servers do pass it on as "\ud83d": not JSON for a strict
    # reader, but a reply all the same.
    try:
        return sendable(json.loads(body.decode("utf-8", "replace"), parse_constant=_no_constant))
    except (ValueError, RecursionError):
        raise NotACompletion(f"{len(body)} bytes that are not JSON") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def error_of(data: Any, why: str, body: bytes = b"") -> NotACompletion:
    """What a reply that should have been a completion is: `why`, and the status of the error it holds, if any."""
    error = data.get("error") if isinstance(data, dict) else None
    if not error:
        return NotACompletion(why, body=body)
    code = error.get("code") if isinstance(error, dict) else None
    status = code if isinstance(code, int) and 400 <= code <= 599 else None
    return NotACompletion(f"{why}, but an error", status, body)


def text_of(value: Any) -> str | None:
    """A short text that a provider gave; None if it is none."""
    return value[:_SHORT] if isinstance(value, str) and value else None


def count_of(value: Any) -> int | None:
    """A count that a provider gave; None if it is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
