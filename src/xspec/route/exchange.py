"""One attempt on the wire: send it, and say what came back."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import httpx2
import openai

from xspec.route.faults import Fault, broken, malformed, refused, timed_out
from xspec.route.guard import SENDING, Sending
from xspec.route.lane import Lane
from xspec.route.reply import Completion, NotACompletion, read_completion, request_ids
from xspec.route.transport import UnreadableReply
from xspec.route.waits import Allowance, allowance
from xspec.spec.models import RouteSpec


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one attempt ended: with a completion, or with `error`, a token, and mostly a `fault`."""

    error: str | None
    status: int | None = None
    completion: Completion | None = None
    fault: Fault | None = None
    allowance: Allowance | None = None
    """What the provider still allows, if a good reply says so."""
    request_ids: dict[str, str] = field(default_factory=dict)


async def exchange(
    lane: Lane, body: bytes, sending: Sending, route: RouteSpec, *, proven: bool, clock: Callable[[], float]
) -> Outcome:
    """Send one attempt and read what comes back. Faults are returned, SpecDrift is raised."""
    policy = route.retry
    asked = lane.asked(sending.place, proven=proven)
    token = SENDING.set(sending)
    try:
        # One limit over the whole attempt: the SDK's own would start again with every byte that drips in.
        async with asyncio.timeout(route.timeout_s):
            response = await lane.client.post(asked.address.url, cast_to=httpx2.Response, content=body)
    except openai.APIStatusError as error:
        response = error.response
    except (TimeoutError, openai.APITimeoutError):
        return _failed(timed_out(asked, policy, route.timeout_s))
    except openai.APIConnectionError as error:
        return _failed(broken(asked, policy, _reason(error)))
    except UnreadableReply as error:
        return _failed(malformed(asked, policy, str(error)))
    finally:
        SENDING.reset(token)
    status = response.status_code
    # Once into a dict: a look-up in the SDK's headers costs as much as this.
    headers = {
        name.lower().decode("latin-1"): _without_key(text, asked.key).decode("latin-1")
        for name, text in response.headers.raw
    }
    content = _without_key(response.content, asked.key)
    ids = request_ids(headers)
    if not 200 <= status < 300:
        return _failed(refused(status, headers, content, asked, policy, clock()), status, ids)
    try:
        completion = read_completion(content, headers)
    except NotACompletion as bad:
        if bad.status is None:
            return _failed(malformed(asked, policy, str(bad), status), status, ids)
        return _failed(refused(bad.status, headers, content, asked, policy, clock()), status, ids)
    tokens = (completion.prompt_tokens or 0) + (completion.completion_tokens or 0)
    left = allowance(headers, clock(), tokens)
    return Outcome(None, status, completion, allowance=left, request_ids=ids)


def _without_key(data: bytes, key: str) -> bytes:
    """A provider that echoes the key must bring it neither into the journal nor before the agent."""
    secret = key.encode()
    return data.replace(secret, b"[key]") if secret in data else data


def _failed(fault: Fault, status: int | None = None, ids: dict[str, str] | None = None) -> Outcome:
    return Outcome(fault.token, status, fault=fault, request_ids=ids or {})


def _reason(error: BaseException) -> str:
    """The innermost explanation: the SDK only says "Connection error."."""
    cause = error.__cause__
    return f"{type(cause).__name__} {cause}".strip() if cause is not None else str(error)
