"""The last stop before the wire, and the first after it: guarded on the way out, bounded on the way in."""

import ssl
import zlib
from collections.abc import AsyncIterator
from typing import Protocol

import httpx2

from xspec.errors import SpecDrift, UserError
from xspec.route.spread import Spread
from xspec.spec.canonical import digest_of

REPLY_LIMIT = 64 * 1024 * 1024
"""Bytes of one reply body, decoded. A model's reply is a thousandth of this."""


class UnreadableReply(Exception):
    """The reply's body is over the limit or not in an encoding that can be read."""


class Check(Protocol):
    """What stands before the wire: xspec.route.guard.Guard, or the one of model lists."""

    def check(self, request: httpx2.Request, body: bytes) -> None:
        """Raises SpecDrift unless the request may leave."""


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Passes on what the guard accepts. `inner` is an argument, so that tests can put anything behind it."""

    def __init__(self, guard: Check, inner: httpx2.AsyncBaseTransport) -> None:
        self._guard = guard
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if not isinstance(request.stream, httpx2.AsyncByteStream):
            raise TypeError("a request whose body cannot be read asynchronously")
        body = b"".join([part async for part in request.stream])
        self._guard.check(request, body)
        # A fresh stream over the very bytes that were checked: nothing else can be read from it later.
        request.stream = httpx2.ByteStream(body)
        response = await self._inner.handle_async_request(request)
        names = {name.lower() for name, _ in response.headers.raw}
        encoding = ""
        if b"content-encoding" in names:
            encoding = response.headers.pop("content-encoding")
        if b"content-type" in names:
            # JSON is UTF-8. A charset would name a codec of this machine, and some of them only raise.
            response.headers["content-type"] = response.headers["content-type"].partition(";")[0]
        if b"set-cookie" in names:
            # A cookie kept from one reply would go out with the next request, and the spec knows of none.
            del response.headers["set-cookie"]
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _BoundedStream(response.stream, encoding)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class _BoundedStream(httpx2.AsyncByteStream):
    """A reply's body, decoded, up to REPLY_LIMIT. The limit holds for what compression unfolds to as well."""

    def __init__(self, stream: httpx2.AsyncByteStream, encoding: str) -> None:
        self._stream = stream
        self._encoding = encoding.strip().lower()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._encoding not in ("", "identity", "gzip", "deflate"):
            raise UnreadableReply(f"content-encoding {self._encoding[:40]}, which was not asked for")
        # 47: gzip or zlib, whichever the header says. Some gateways compress unasked.
        unfold = zlib.decompressobj(47) if self._encoding in ("gzip", "deflate") else None
        left = REPLY_LIMIT
        async for part in self._stream:
            if unfold is not None:
                try:
                    part = unfold.decompress(part, left + 1)
                except zlib.error:
                    raise UnreadableReply("compressed bytes that do not unfold") from None
            left -= len(part)
            if left < 0:
                raise UnreadableReply(f"more than {REPLY_LIMIT} bytes")
            yield part

    async def aclose(self) -> None:
        await self._stream.aclose()


def guarded_transport(guard: Check, *, secure: bool, ca: bytes | None, proxy: str | None) -> GuardedTransport:
    """The way out that takes no proxy and no CA file from the environment.

    It has no time limits of its own: one limit over the whole attempt is set by the caller. `secure` says
    whether any address is https; without it no certificate authority is loaded, so none could be trusted.
    """
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=30)
    tls = _tls(ca) if secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    inner = Spread(lambda: httpx2.AsyncHTTPTransport(verify=tls, trust_env=False, proxy=proxy, limits=limits))
    return GuardedTransport(guard, inner)


def http_client(transport: GuardedTransport) -> httpx2.AsyncClient:
    """A client that takes no credentials from the environment, follows no redirect and sets no time limit."""
    return httpx2.AsyncClient(
        transport=transport,
        trust_env=False,
        follow_redirects=False,
        timeout=None,
        headers={"accept": "application/json", "accept-encoding": "identity"},
    )


def _tls(ca: bytes | None) -> ssl.SSLContext:
    """Only the given authorities, else the usual ones (read without `SSL_CERT_FILE`). Made once for all connections."""
    if ca is None:
        return httpx2.create_ssl_context(trust_env=False)
    return ssl.create_default_context(cadata=ca.decode("ascii"))


def check_ca(frozen: str | None, ca: bytes | None) -> None:
    """Raise unless `ca` is the PEM file that the spec names by digest, or both are absent."""
    live = None if ca is None else digest_of(ca)
    if live != frozen:
        raise SpecDrift("route.ca", frozen, live)
    if ca is not None:
        try:
            _tls(ca)
        except (ssl.SSLError, ValueError):
            raise UserError("the CA file of the route is not a PEM file with certificates") from None
