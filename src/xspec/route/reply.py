"""Reading a reply: the message and what the provider says about how it was made."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

import orjson

from xspec.route.conversation import sendable
from xspec.route.drift import Served

_REQUEST_IDS = ("x-request-id", "x-oneapi-request-id", "apim-request-id", "request-id", "cf-ray")
_UPSTREAMS = ("x-litellm-model-id", "x-litellm-model-api-base")
_SHORT = 200


class NotACompletion(Exception):
    """A 2xx whose body is not a chat completion. `status` is set if it is an error reply in disguise."""

    def __init__(self, why: str, status: int | None = None) -> None:
        super().__init__(why)
        self.status = status


@dataclass(frozen=True, slots=True)
class Completion:
    """A usable reply. None means the provider did not say."""

    message: dict[str, Any]
    finish_reason: str | None
    prompt_tokens: int | None
    completion_tokens: int | None
    served: Served


@dataclass(frozen=True, slots=True)
class Reply:
    """What a call brings back. `drift` holds only what the spec's policy says invalidates the trial.

    `attempts` counts the HTTP tries, `waited_s` the seconds between and before them, and `request_digest`
    names the body that was answered.
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


def read_completion(body: bytes, headers: Mapping[str, str]) -> Completion:
    """Raises NotACompletion that says what is missing."""
    data = _loads(body)
    if not isinstance(data, dict):
        raise NotACompletion(f"a JSON {type(data).__name__} instead of an object")
    choices = data.get("choices")
    if not isinstance(choices, list) or not choices:
        _raise_error_of(data, "no choices")
    choice = choices[0]
    message = choice.get("message") if isinstance(choice, dict) else None
    if isinstance(choice, dict) and choice.get("finish_reason") == "error":
        _raise_error_of(choice, "a choice that ended in an error")
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
        finish_reason=_text(choice.get("finish_reason")),
        prompt_tokens=_count(usage.get("prompt_tokens")),
        completion_tokens=_count(usage.get("completion_tokens")),
        served=Served(
            model=_text(data.get("model")),
            upstream=_text(data.get("provider"))
            or next((headers[h] for h in _UPSTREAMS if headers.get(h)), None),
            fingerprint=_text(data.get("system_fingerprint")),
        ),
    )


def request_ids(headers: Mapping[str, str]) -> dict[str, str]:
    """The names under which the provider and what stands before it will find this request again."""
    return {name: headers[name][:_SHORT] for name in _REQUEST_IDS if headers.get(name)}


def _loads(body: bytes) -> Any:
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


def _raise_error_of(data: dict[str, Any], why: str) -> NoReturn:
    error = data.get("error")
    if not error:
        raise NotACompletion(why)
    code = error.get("code") if isinstance(error, dict) else None
    status = code if isinstance(code, int) and 400 <= code <= 599 else None
    raise NotACompletion(f"{why}, but an error", status)


def _text(value: Any) -> str | None:
    return value[:_SHORT] if isinstance(value, str) and value else None


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
