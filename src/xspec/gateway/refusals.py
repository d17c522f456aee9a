"""How what goes wrong is told to a harness: in a status that makes its client stop at once.

The spec's own retry policy was carried out when a call fails here, so trying again would be another policy than the
frozen one. 408, 409, 429 and 5xx are tried again by the SDKs of OpenAI's kind (and 500 thirty times by some), 400 is
not; so 400 it is, whatever the provider's own status was, unless that one is the harness's to deal with.
"""

from dataclasses import dataclass
from typing import Literal

import orjson

from xspec.errors import RouteStopped, SpecDrift, XspecError
from xspec.gateway.answer import JSON
from xspec.gateway.attribution import NoSuchTrial
from xspec.route.faults import AgentFault, CallFailed
from xspec.route.foreign import Contradiction, NotARequest

STOP = 400
_PASSED_ON = (400, 413, 422)
"""Statuses of a provider that say what is wrong with the request itself."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """What the harness gets, and as what its call is recorded."""

    status: int
    body: bytes
    content_type: str
    ended: Literal["refused", "failed", "stopped"]


def refusal(error: XspecError) -> Refusal:
    """The answer that ends a call."""
    if isinstance(error, Contradiction):
        field = error.change.field
        return Refusal(STOP, error_body(str(error), "contradicts_spec", field), JSON, "refused")
    if isinstance(error, NotARequest):
        return Refusal(STOP, error_body(str(error), "invalid_request"), JSON, "refused")
    if isinstance(error, NoSuchTrial):
        return Refusal(404, error_body(str(error), "no_such_trial"), JSON, "refused")
    if isinstance(error, AgentFault | CallFailed):
        answered = error.answered
        if answered is not None and answered.status in _PASSED_ON:
            return Refusal(answered.status, answered.body, answered.content_type or JSON, "failed")
        return Refusal(STOP, error_body(str(error), error.token), JSON, "failed")
    if isinstance(error, SpecDrift):
        return Refusal(STOP, error_body(str(error), "spec_drift", error.field), JSON, "stopped")
    code = error.cause if isinstance(error, RouteStopped) else "stopped"
    return Refusal(STOP, error_body(str(error), code), JSON, "stopped")


def error_body(message: str, code: str, field: str | None = None) -> bytes:
    """An error as OpenAI-compatible servers write it; `type` says that it is not the provider's."""
    error = {"message": f"xspec gateway: {message}", "type": "xspec", "param": field, "code": code}
    return orjson.dumps({"error": error})
