"""What a failed attempt was, in one token, and what it means for the call.

    token               status or sign                             what follows
    rate_limited        429                                        waited out, up to max_wait_s
    server_error        5xx, or such an error inside a 200         tried again if the policy has the status
    timeout             nothing whole within timeout_s             tried again if the policy says so
    connection          refused, reset, cut off, TLS               tried again if the policy says so
    malformed_reply     200 that is not a chat completion          as connection
    context_overflow    400 or 413 that says it is too long        ContextOverflow: the agent's
    content_filter      400 that says a filter refused             ContentFiltered: the agent's
    unauthorized        401                                        RouteStopped
    payment_required    402                                        RouteStopped
    forbidden           403                                        RouteStopped
    not_found           404                                        RouteStopped
    model_not_found     404 or 503 with that code                  RouteStopped
    insufficient_quota  429 with that code                         RouteStopped
    redirect            3xx                                        RouteStopped at first, then CallFailed
    bad_request         400 and other 4xx                          RouteStopped at first, then CallFailed

"At first" means: before the member gave its first usable reply in this execution. Three more tokens stand in
rows of attempts that brought no answer at all: `spec_drift` (the guard refused it), `cancelled`, and
`internal_error` (a mistake in xspec).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson

from xspec.counted import counted
from xspec.errors import RouteStopped, XspecError
from xspec.route.address import Address, other_path
from xspec.route.keys import owner_of, scrub
from xspec.route.waits import asked_wait
from xspec.spec.models import RetryPolicy


@dataclass(frozen=True, slots=True)
class Answered:
    """A reply that brought no completion, as it came; the key is not in it."""

    status: int
    content_type: str
    body: bytes


class CallFailed(XspecError):
    """A call got no usable reply within its retries. `token` is the last fault; the trial is invalid."""

    answered: Answered | None = None
    """The reply to the last attempt, if there was one."""

    def __init__(self, token: str, what: str) -> None:
        super().__init__(what)
        self.token = token


class AgentFault(XspecError):
    """The provider refused what the agent asked: the trial fails, the route is well. `token` says how."""

    token = "agent_fault"
    answered: Answered | None = None
    """The reply that said so."""


class ContextOverflow(AgentFault):
    """The conversation outgrew the model's context."""

    token = "context_overflow"


class ContentFiltered(AgentFault):
    """The provider's filter refused the conversation."""

    token = "content_filter"


@dataclass(frozen=True, slots=True)
class Fault:
    """One failed attempt. `again`: how it is tried again; `final`: raised if it is not (None: CallFailed).

    `wait_s` is what the provider asked for, None if it did not say. `what` is scrubbed and short.
    """

    token: str
    what: str
    status: int | None = None
    again: Literal["no", "backoff", "wait"] = "no"
    wait_s: float | None = None
    final: XspecError | None = None

    def error(self, attempts: int) -> XspecError:
        """What the call raises when this was its last attempt."""
        if self.final is not None:
            return self.final
        tries = counted(attempts, "attempt")
        return CallFailed(self.token, f"no usable reply after {tries}; the last: {self.what}")


@dataclass(frozen=True, slots=True)
class Asked:
    """What classifying needs to know of the request: for the hints, and to keep the key out of them."""

    member: str
    model: str
    key_env: str
    key: str = field(repr=False)
    address: Address
    proven: bool
    """Whether the member gave a usable reply before, in this execution."""


def refused(
    status: int, headers: Mapping[str, str], body: bytes, asked: Asked, policy: RetryPolicy, now: float
) -> Fault:
    """Classify a reply that is not a 2xx (or an error in the clothes of one). `headers`: lower-case names."""
    codes, message = _error_of(body)
    said = scrub(message, (asked.key,))
    what = f"member {asked.member} answered {status}" + (f": {said}" if said else "")

    if 300 <= status < 400:
        where = scrub(headers.get("location", "nowhere"), (asked.key,), 120)
        final = _stop(
            "redirect", what, f"it redirects to {where}, which is not followed; name that address as base_url"
        )
        return Fault("redirect", what, status, final=None if asked.proven else final)
    stop = _stop_of(status, codes, message, asked, what)
    if stop is not None:
        return Fault(stop.cause, what, status, final=stop)
    if status == 429:
        return Fault("rate_limited", what, status, "wait", asked_wait(headers, now))
    if status < 500:
        agents = _agents_own(status, codes, message, what)
        if agents is not None:
            return Fault(agents.token, what, status, final=agents)
    again: Literal["no", "backoff"] = "backoff" if status in policy.statuses else "no"
    if status >= 500:
        return Fault("server_error", what, status, again)
    if again == "no" and not asked.proven:
        hint = (
            f"the first call was already refused: check that {asked.model} exists there and takes the "
            "sampling fields, tools and extra_body of the spec"
        )
        return Fault("bad_request", what, status, final=_stop("bad_request", what, hint))
    return Fault("bad_request", what, status, again)


def timed_out(asked: Asked, policy: RetryPolicy, limit_s: float) -> Fault:
    what = f"member {asked.member} gave no whole reply within {limit_s:g} s"
    return Fault("timeout", what, again="backoff" if policy.timeouts else "no")


def broken(asked: Asked, policy: RetryPolicy, why: str) -> Fault:
    """The connection could not be made, or broke."""
    what = (
        f"the connection to member {asked.member} ({asked.address.origin}) failed: {scrub(why, (asked.key,))}"
    )
    return Fault("connection", what, again="backoff" if policy.connection_errors else "no")


def malformed(asked: Asked, policy: RetryPolicy, why: str, status: int | None = 200) -> Fault:
    """A reply that is none. It counts like a broken connection, which is what it mostly is."""
    what = f"member {asked.member} sent a malformed reply: {scrub(why, (asked.key,))}"
    return Fault("malformed_reply", what, status, again="backoff" if policy.connection_errors else "no")


_QUOTA = {"insufficient_quota", "insufficient_user_quota", "billing_hard_limit_reached", "billing_not_active"}
_NO_MODEL = {"model_not_found", "model_not_available"}
_OVERFLOW_CODES = {"context_length_exceeded", "context_window_exceeded", "request_too_large"}
_OVERFLOW = re.compile(
    r"maximum context|context[ _](?:length|window|size|limit)|(?:prompt|input) is too long|too many tokens|"
    r"input (?:length|tokens?) .*exceed|reduce the length",
    re.IGNORECASE,
)
_FILTER_CODES = {"content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation"}


def _stop_of(status: int, codes: set[str], message: str, asked: Asked, what: str) -> RouteStopped | None:
    env, model, base = asked.key_env, asked.model, asked.address.origin
    no_model = bool(codes & _NO_MODEL) or "model_not_found" in message
    if status == 401:
        owner = owner_of(asked.key)
        looks = f"; it looks like a key of {owner}" if owner is not None else ""
        hint = (
            f"the key in the variable {env} is not valid at {base}: missing a part, revoked, padded, or "
            f"another provider's{looks}"
        )
        return _stop("unauthorized", what, hint)
    if status == 402:
        return _stop(
            "payment_required", what, f"the account behind the variable {env} has no credit at {base}: top up"
        )
    if status == 403:
        hint = (
            f"the key in the variable {env} may not use {model} (its group, project, region or address list)"
        )
        return _stop("forbidden", what, hint)
    if status in (404, 503) and no_model:
        hint = f"{base} has no model {model} for the key in the variable {env}: check name and key group"
        return _stop("model_not_found", what, hint)
    if status == 404:
        hint = (
            f"nothing answers at {asked.address.target}; the other usual path is "
            f"{other_path(asked.address.target)} (or {base} has no model {model})"
        )
        return _stop("not_found", what, hint)
    if status == 429 and (codes & _QUOTA or "insufficient_quota" in message):
        hint = f"the quota behind the variable {env} is used up, waiting does not help: raise it or top up"
        return _stop("insufficient_quota", what, hint)
    return None


def _agents_own(status: int, codes: set[str], message: str, what: str) -> AgentFault | None:
    if codes & _FILTER_CODES:
        return ContentFiltered(what)
    if status == 413 or codes & _OVERFLOW_CODES or (status in (400, 422) and _OVERFLOW.search(message)):
        return ContextOverflow(what)
    return None


def _stop(cause: str, what: str, hint: str) -> RouteStopped:
    return RouteStopped(cause, what, hint)


def _error_of(body: bytes) -> tuple[set[str], str]:
    """Codes and message of an error body, however it is built; its text if it is not JSON."""
    try:
        data = orjson.loads(body)
    except orjson.JSONDecodeError:
        return set(), body[:2000].decode("utf-8", "replace")
    error = data.get("error", data) if isinstance(data, dict) else data
    if not isinstance(error, dict):
        return set(), _shown(error)
    inner = error.get("innererror")
    nested = inner.get("code") if isinstance(inner, dict) else None
    codes = {code for code in (error.get("code"), error.get("type"), nested) if isinstance(code, str)}
    message: Any = error.get("message") or error.get("detail") or error.get("msg") or ""
    return codes, _shown(message)


def _shown(value: Any) -> str:
    """What stands where a message should: mostly a text, but some servers nest, and a hostile one without end."""
    try:
        return str(value)[:2000]
    except RecursionError:
        return "(nested too deeply to be shown)"
