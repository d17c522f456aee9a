"""One attempt on the wire: send it, and say what came back."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import httpx2

from xspec.route.faults import Answered, Fault, broken, malformed, refused, timed_out
from xspec.route.foreign import Observed
from xspec.route.guard import SENDING, Sending
from xspec.route.keys import without_key
from xspec.route.lane import Lane
from xspec.route.reply import Completion, NotACompletion, read_completion, request_ids
from xspec.route.sdk import openai
from xspec.route.streaming import Relay, is_event_stream, pass_on
from xspec.route.transport import UnreadableReply
from xspec.route.waits import Allowance, allowance
from xspec.spec.models import RouteSpec


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one attempt ended: with a completion, or with `error`, a token, and mostly a `fault`.

    `answered` is the reply as it came, if a whole one did.
    """

    error: str | None
    status: int | None = None
    completion: Completion | None = None
    fault: Fault | None = None
    allowance: Allowance | None = None
    """What the provider still allows, if a good reply says so."""
    request_ids: dict[str, str] = field(default_factory=dict)
    answered: Answered | None = None


async def exchange(
    lane: Lane,
    body: bytes,
    sending: Sending,
    route: RouteSpec,
    *,
    proven: bool,
    clock: Callable[[], float],
    relay: Relay | None = None,
) -> Outcome:
    """Send one attempt and read what comes back. Faults are returned, SpecDrift is raised.

    With a `relay` the reply is asked for as a stream and passed on while it comes; once it has begun, no fault is
    tried again.
    """
    outcome = await _exchange(lane, body, sending, route, proven, clock, relay)
    if relay is not None and relay.started and outcome.fault is not None:
        return replace(outcome, fault=replace(outcome.fault, again="no"))
    return outcome


async def _exchange(
    lane: Lane,
    body: bytes,
    sending: Sending,
    route: RouteSpec,
    proven: bool,
    clock: Callable[[], float],
    relay: Relay | None,
) -> Outcome:
    policy = route.retry
    asked = lane.asked(sending.place, proven=proven)
    response: httpx2.Response | None = None
    streamed: Completion | NotACompletion | None = None
    send = lane.forward if isinstance(sending.pins, Observed) else lane.post
    token = SENDING.set(sending)
    try:
        # One limit over the whole attempt: the SDK's own would start again with every byte that drips in. Of a
        # stream it limits what comes before its first piece, and each silence after it.
        async with asyncio.timeout(route.timeout_s) as limit:
            response = await send(asked.address.url, body, stream=relay is not None)
            if relay is not None and is_event_stream(response):
                streamed = await pass_on(response, relay, asked.key, limit, route.timeout_s)
            elif relay is not None:
                await response.aread()
    except openai.APIStatusError as error:
        response = error.response
    except (TimeoutError, openai.APITimeoutError, httpx2.TimeoutException):
        return _failed(timed_out(asked, policy, route.timeout_s), _status(response))
    except openai.APIConnectionError as error:
        return _failed(broken(asked, policy, _reason(error)))
    except httpx2.TransportError as error:
        return _failed(broken(asked, policy, f"{type(error).__name__} {error}"), _status(response))
    except UnreadableReply as error:
        return _failed(malformed(asked, policy, str(error)))
    finally:
        SENDING.reset(token)
        if relay is not None and response is not None:
            await response.aclose()
    status = response.status_code
    # Once into a dict: a look-up in the SDK's headers costs as much as this.
    headers = {
        name.lower().decode("latin-1"): without_key(text, asked.key).decode("latin-1")
        for name, text in response.headers.raw
    }
    ids = request_ids(headers)
    if isinstance(streamed, Completion):
        completion = streamed.named_by(headers)
        return Outcome(None, status, completion, allowance=_left(completion, headers, clock), request_ids=ids)
    content = streamed.body if streamed is not None else without_key(response.content, asked.key)
    answered = Answered(status, headers.get("content-type", ""), content)
    if not 200 <= status < 300:
        return _failed(refused(status, headers, content, asked, policy, clock()), status, ids, answered)
    try:
        if streamed is not None:
            raise streamed
        completion = read_completion(content, headers)
    except NotACompletion as bad:
        if bad.status is None:
            return _failed(malformed(asked, policy, str(bad), status), status, ids)
        return _failed(refused(bad.status, headers, content, asked, policy, clock()), status, ids)
    left = _left(completion, headers, clock)
    return Outcome(None, status, completion, allowance=left, request_ids=ids, answered=answered)


def _left(completion: Completion, headers: Mapping[str, str], clock: Callable[[], float]) -> Allowance | None:
    tokens = (completion.prompt_tokens or 0) + (completion.completion_tokens or 0)
    return allowance(headers, clock(), tokens)


def _failed(
    fault: Fault,
    status: int | None = None,
    ids: dict[str, str] | None = None,
    answered: Answered | None = None,
) -> Outcome:
    return Outcome(fault.token, status, fault=fault, request_ids=ids or {}, answered=answered)


def _status(response: httpx2.Response | None) -> int | None:
    return None if response is None else response.status_code


def _reason(error: BaseException) -> str:
    """The innermost explanation: the SDK only says "Connection error."."""
    cause = error.__cause__
    return f"{type(cause).__name__} {cause}".strip() if cause is not None else str(error)
