"""A connection for each request under way, each with a pool of its own.

httpcore's pool looks at every connection it holds for each request that begins: with 16 at once that is a sixth of a
call's CPU, with 200 it is most of it. Of a pool that holds one connection nothing has to be looked for.
"""

from collections.abc import AsyncIterator, Callable

import httpx2


class Spread(httpx2.AsyncBaseTransport):
    """Gives each request a transport that no other is using; the one that was used last goes first.

    `make` builds another one when all are taken. A transport is free again when its response is closed.
    """

    def __init__(self, make: Callable[[], httpx2.AsyncBaseTransport]) -> None:
        self._make = make
        self._all: list[httpx2.AsyncBaseTransport] = []
        self._free: list[httpx2.AsyncBaseTransport] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if self._free:
            transport = self._free.pop()
        else:
            transport = self._make()
            self._all.append(transport)
        try:
            response = await transport.handle_async_request(request)
        except BaseException:
            self._free.append(transport)
            raise
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _Freeing(response.stream, lambda: self._free.append(transport))
        return response

    async def aclose(self) -> None:
        for transport in self._all:
            await transport.aclose()


class _Freeing(httpx2.AsyncByteStream):
    """A response's body that tells once when it is closed."""

    def __init__(self, stream: httpx2.AsyncByteStream, free: Callable[[], None]) -> None:
        self._stream = stream
        self._free: Callable[[], None] | None = free

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._stream.__aiter__()

    async def aclose(self) -> None:
        free, self._free = self._free, None
        try:
            await self._stream.aclose()
        finally:
            if free is not None:
                free()
