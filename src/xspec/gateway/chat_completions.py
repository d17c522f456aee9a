"""`POST /v1/chat/completions`, plain and streamed."""

import asyncio
import time

from xspec.errors import XspecError
from xspec.gateway.answer import Answer
from xspec.gateway.endpoint import Frozen, Incoming
from xspec.gateway.ledger import Ended, Request
from xspec.gateway.refusals import STOP, refusal
from xspec.route.foreign import OBSERVED, OBSERVED_PINS, ForeignBody, NotARequest
from xspec.route.reply import Reply
from xspec.spec.canonical import digest_of

NAME = "chat_completions"
RETRY_COUNT = "x-stainless-retry-count"
"""Sent by SDKs of OpenAI's kind: above 0 the request is a retry of the client's own."""


async def chat_completions(frozen: Frozen, incoming: Incoming, answer: Answer) -> None:
    """Sends the request on, in line with the spec, and tells how it went."""
    at, began = time.time(), time.perf_counter()
    wrong: XspecError | None = incoming.attributed.wrong
    body: ForeignBody | None = None
    try:
        body = ForeignBody(incoming.body, frozen.enforce, frozen.models)
    except NotARequest as error:
        wrong = wrong or error
    fields = body.fields if body is not None else {}
    retries = incoming.headers.get(RETRY_COUNT, "")
    seen = frozen.conversations.see(
        incoming.attributed.trial,
        incoming.attributed.by,
        digest_of(incoming.body),
        fields.get("messages", []),
        is_retry=retries.isdecimal() and retries.strip("0") != "",
    )
    request = Request(NAME, seen, at, len(incoming.body), fields.get("stream") is True, fields.get("tools"))
    request.observed = sorted(OBSERVED & fields.keys())

    def over(ended: Ended, status: int | None, why: str | None = None, reply: Reply | None = None) -> None:
        changes = body.changes if body is not None else []
        request.changes = changes if ended != "refused" else [c for c in changes if c.contradicts]
        added = frozen.conversations.over(seen, reply.message if reply is not None else None)
        latency_s = time.perf_counter() - began
        frozen.ledger.write(
            request, ended, status=status, latency_s=latency_s, why=why, reply=reply, added=added
        )

    try:
        if wrong is not None:
            raise wrong
        assert body is not None
        relay = answer if request.streamed else None
        reply = await frozen.route.call(body, OBSERVED_PINS, seen.place, relay)
    except XspecError as error:
        told = refusal(error)
        if answer.started:  # a stream that broke: not ending it passes the break on
            over("broken", answer.status, str(error))
        else:
            over(told.ended, told.status, str(error))
            await answer.whole(told.status, told.body, told.content_type, final=True)
    except asyncio.CancelledError:
        if answer.cut_off:
            over("stopped", answer.status or STOP, "the gateway was closed during this call")
        else:
            over("gone", answer.status)
        raise
    else:
        over("answered", 200, reply=reply)
        if answer.started:
            await answer.end()
        else:
            await answer.whole(200, reply.body, reply.content_type)
