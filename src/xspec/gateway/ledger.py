"""What a gateway writes down of each call, beside the attempts that the route records."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson

from xspec.gateway.conversations import Seen
from xspec.records.rows import Call, Step
from xspec.route.body import ABSENT
from xspec.route.conversation import sendable
from xspec.route.foreign import Change
from xspec.route.reply import Reply
from xspec.spec.canonical import digest_of

Ended = Literal["answered", "refused", "failed", "stopped", "broken", "gone"]


@dataclass(slots=True)
class Request:
    """One request on its way through the gateway, as far as it is known. Times are seconds."""

    endpoint: str
    seen: Seen
    at: float
    size: int
    streamed: bool = False
    tools: Any = None
    changes: list[Change] = field(default_factory=list)
    observed: list[str] = field(default_factory=list)


class Ledger:
    """Writes a Call for each request, and a Step for each that was answered for the first time.

    `keep` stores a blob and returns its digest: tool schemas, once each.
    """

    def __init__(
        self,
        record_call: Callable[[Call], None],
        record_step: Callable[[Step], None],
        keep: Callable[[bytes], str],
    ) -> None:
        self._record_call = record_call
        self._record_step = record_step
        self._keep = keep
        self._kept: set[str] = set()

    def write(
        self,
        request: Request,
        ended: Ended,
        *,
        status: int | None,
        latency_s: float,
        why: str | None = None,
        reply: Reply | None = None,
        added: Sequence[Any] | None = None,
    ) -> None:
        """`added` are the messages of the step, None if it stands in the journal already. Raises DiskFailed."""
        seen = request.seen
        place = seen.place
        others: list[Any] = []
        if reply is not None:
            if added is not None:
                self._record_step(_step(request, reply, added))
            others = [*(() if added is not None else (reply.message,)), *reply.others]
        self._record_call(
            Call(
                run=place.run,
                task=place.task,
                take=place.take,
                step=place.step,
                call=place.call,
                at=request.at,
                by=seen.by,
                endpoint=request.endpoint,
                streamed=request.streamed,
                asked_digest=seen.digest,
                bytes=request.size,
                tools=self._tools(request.tools),
                changes=[_plain(change) for change in request.changes],
                observed=[_sendable(name) for name in request.observed],
                again=seen.again,
                ended=ended,
                status=status,
                why=why,
                latency_s=latency_s,
                drift=reply.drift if reply is not None else [],
                others=[_sendable(message) for message in others],
            )
        )

    def _tools(self, tools: Any) -> str | None:
        if not tools:
            return None
        try:
            data = orjson.dumps(tools)
        except TypeError:
            data = orjson.dumps(sendable(tools))
        digest = digest_of(data)
        if digest not in self._kept:
            self._keep(data)
            self._kept.add(digest)
        return digest


def _step(request: Request, reply: Reply, added: Sequence[Any]) -> Step:
    place = request.seen.place
    return Step(
        run=place.run,
        task=place.task,
        take=place.take,
        step=place.step,
        at=request.at,
        member=reply.member,
        request_digest=reply.request_digest,
        finish_reason=reply.finish_reason,
        refusal=reply.message.get("refusal") or None,
        actions=[],
        added=[_sendable(message) for message in added],
    )


def _plain(change: Change) -> dict[str, Any]:
    plain = {"field": change.field, "asked": change.asked, "sent": change.sent}
    return {name: _sendable(value) for name, value in plain.items() if value is not ABSENT}


def _sendable(value: Any) -> Any:
    """`value` as a row can hold it. Most values can be held as they are, which is found out faster than mended."""
    try:
        orjson.dumps([[[[value]]]])  # at least as deep as it will stand in its row
    except TypeError:
        return sendable(value)
    return value
