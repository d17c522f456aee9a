"""The answer to one request, over ASGI: in one piece, or as a stream that may break off."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
JSON = "application/json"


class Answer:
    """Sends at most one answer. It is the Relay of a streamed reply (see xspec.route.streaming).

    `write` returns when the caller has taken enough for more. A stream that is never ended is cut off when the
    request's handler returns, which a caller sees as a broken connection. `cut_off` says that the gateway is closing
    and gives the call up.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self.started = False
        self.status: int | None = None
        self.cut_off = False

    async def whole(self, status: int, body: bytes, content_type: str = JSON, *, final: bool = False) -> None:
        """An answer in one piece. `final` asks SDKs that know the header not to try again."""
        headers = [
            (b"content-type", content_type.encode("latin-1")),
            (b"content-length", b"%d" % len(body)),
        ]
        if final:
            headers.append((b"x-should-retry", b"false"))
        self.started, self.status = True, status
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": body})

    async def write(self, events: bytes) -> None:
        """A piece of a stream of server-sent events."""
        if not self.started:
            self.started, self.status = True, 200
            headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache")]
            await self._send({"type": "http.response.start", "status": 200, "headers": headers})
        await self._send({"type": "http.response.body", "body": events, "more_body": True})

    async def end(self) -> None:
        """The orderly end of a stream."""
        await self._send({"type": "http.response.body", "body": b""})
