"""HTTP/1.1 on a socket: h11 reads and frames, and what a fault breaks is broken here."""

import asyncio
import socket
import struct
from collections.abc import Callable

import h11

from xspec.rehearsal.replies import Reply, bad_request, error_body

MAX_BODY = 64 * 1024 * 1024
"""Bytes of a request body, and of what a client may send ahead of its turn."""

Answer = Callable[[str, str, bytes], Reply]
"""From method, path without query, and body to the reply."""


class Connection(asyncio.Protocol):
    """One client connection. Requests are answered one after another, in their order.

    Callbacks instead of a task: a reply that is due at once costs no turn of the event loop.
    """

    def __init__(self, answer: Answer, refused: Callable[[int], None]) -> None:
        self._answer = answer
        self._refused = refused
        self._http = h11.Connection(h11.SERVER)
        self._transport: asyncio.Transport | None = None
        self._request: h11.Request | None = None
        self._body: list[bytes] = []
        self._size = 0
        self._ahead = 0
        self._due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio when a client has connected."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by asyncio when the connection is gone: a reply still due is dropped."""
        if self._due is not None:
            self._due.cancel()
        self._transport = self._due = None

    def data_received(self, data: bytes) -> None:
        """Called by asyncio with what the client sent."""
        if self._due is not None:
            self._ahead += len(data)
            if self._ahead > MAX_BODY and self._transport is not None:
                self._transport.abort()
                return
        self._http.receive_data(data)
        self._read()

    def _read(self) -> None:
        while self._transport is not None and not self._transport.is_closing() and self._due is None:
            try:
                event = self._http.next_event()
            except h11.RemoteProtocolError as error:
                self._refuse(bad_request(f"not HTTP/1.1 as it should be: {error}"), error.error_status_hint)
                return
            if event is h11.NEED_DATA:
                if self._http.they_are_waiting_for_100_continue:
                    go_on = h11.InformationalResponse(status_code=100, headers=[])
                    self._transport.write(self._http.send(go_on) or b"")
                return
            if isinstance(event, h11.Request):
                self._request, self._body, self._size = event, [], 0
            elif isinstance(event, h11.Data):
                self._body.append(bytes(event.data))
                self._size += len(event.data)
                if self._size > MAX_BODY:
                    self._refuse(Reply(413, error_body("the body is too large", "invalid_request_error")))
                    return
            elif isinstance(event, h11.EndOfMessage):
                self._respond()
            else:  # PAUSED or ConnectionClosed: this connection has had its last request
                return

    def _respond(self) -> None:
        assert self._request is not None
        path = self._request.target.decode("ascii", "replace").partition("?")[0]
        reply = self._answer(self._request.method.decode("ascii"), path, b"".join(self._body))
        self._body = []
        if reply.delay_s > 0:
            self._ahead = 0
            self._due = asyncio.get_running_loop().call_later(reply.delay_s, self._late, reply)
        else:
            self._send(reply)

    def _late(self, reply: Reply) -> None:
        self._due = None
        self._send(reply)
        self._read()

    def _send(self, reply: Reply) -> None:
        if self._transport is None:
            return
        if reply.ending == "reset":
            _reset(self._transport)
            return
        head = self._http.send(self._head(reply)) or b""
        if reply.ending == "close_early":
            part = h11.Data(data=reply.body[: reply.sent])
            self._transport.write(head + (self._http.send(part) or b""))
            self._transport.close()
            return
        without_body = self._request is not None and self._request.method == b"HEAD"
        data = b"" if without_body else self._http.send(h11.Data(data=reply.body)) or b""
        self._transport.write(head + data + (self._http.send(h11.EndOfMessage()) or b""))
        if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
            self._http.start_next_cycle()
        else:
            self._transport.close()

    def _refuse(self, reply: Reply, status: int | None = None) -> None:
        """Answer what cannot be a request, and close: nothing after it can be told apart."""
        reply = Reply(status or reply.status, reply.body)
        self._refused(reply.status)
        if self._transport is None:
            return
        if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            head = self._http.send(self._head(reply, ("connection", "close"))) or b""
            self._transport.write(head + reply.body)
        self._transport.close()

    @staticmethod
    def _head(reply: Reply, *more: tuple[str, str]) -> h11.Response:
        kind, length = ("content-type", "application/json"), ("content-length", str(len(reply.body)))
        if reply.streamed:
            kind, length = ("content-type", "text/event-stream"), ("transfer-encoding", "chunked")
        return h11.Response(status_code=reply.status, headers=[kind, length, *reply.headers, *more])


def _reset(transport: asyncio.Transport) -> None:
    """Drop the connection with a TCP reset; a plain close would be an orderly end."""
    sock = transport.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
