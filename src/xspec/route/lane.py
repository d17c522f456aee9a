"""One member's lane: its key, addresses and pacer, and the two ways in which a body goes out on it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import httpx2

from xspec import __version__
from xspec.records.rows import Place
from xspec.route.address import Address
from xspec.route.faults import Asked
from xspec.route.keys import NO_KEY, read_key
from xspec.route.pacing import Pacer
from xspec.route.sdk import openai
from xspec.spec.members import Member


class PlainClient(openai.AsyncOpenAI):
    """An SDK client whose requests depend on its arguments alone.

    The SDK reads OPENAI_BASE_URL, OPENAI_ORG_ID, OPENAI_PROJECT_ID, OPENAI_ADMIN_KEY and
    OPENAI_CUSTOM_HEADERS (which wins over an explicit key). URLs are given whole at every call, and the
    headers are these and no others.
    """

    def __init__(self, key: str, origin: str, http: httpx2.AsyncClient, timeout_s: float) -> None:
        # The limit on the whole attempt is the caller's. Connecting ends well before it, because a TLS
        # handshake that is cancelled, rather than timed out, leaves its socket open.
        self.limits = httpx2.Timeout(None, connect=0.8 * timeout_s)
        super().__init__(api_key=key, base_url=origin, max_retries=0, timeout=self.limits, http_client=http)

    @property
    def default_headers(self) -> dict[str, str | openai.Omit]:
        return {**_HEADERS}


_HEADERS = {
    "Accept": "application/json",
    "Content-Type": "application/json",
    "User-Agent": f"xspec/{__version__}",
}


@dataclass(frozen=True, slots=True, repr=False)
class Lane:
    """What a call to one member needs.

    `fixed`: the body fields that member and spec fix; `opening`: the start of a body that holds them; `locate`: a
    call's address.
    """

    member: Member
    key: str
    fixed: Mapping[str, Any]
    opening: bytes
    locate: Callable[[Place], Address]
    client: PlainClient
    transport: httpx2.AsyncBaseTransport
    pacer: Pacer

    async def post(self, url: str, body: bytes, *, stream: bool) -> httpx2.Response:
        """Send a body of ours. Raises the SDK's errors, also for a status that is none of success."""
        how: dict[str, Any] = {"stream": True, "stream_cls": openai.AsyncStream} if stream else {}
        response: httpx2.Response = await self.client.post(url, cast_to=httpx2.Response, content=body, **how)
        return response

    async def forward(self, url: str, body: bytes, *, stream: bool) -> httpx2.Response:
        """Send a body that another program's SDK has made: another one would only cost. Raises httpx2's errors."""
        limits = {"timeout": self.client.limits.as_dict()}
        request = httpx2.Request(
            "POST", _parsed(url), headers=_forwarding(self.key), content=body, extensions=limits
        )
        response = await self.transport.handle_async_request(request)
        if not stream:
            try:
                await response.aread()
            finally:
                await response.aclose()
        return response

    def asked(self, place: Place, *, proven: bool) -> Asked:
        env = self.member.api_key_env if self.member.kind == "openai" else "(none: xspec starts it)"
        return Asked(self.member.name, self.member.model, env, self.key, self.locate(place), proven)


@lru_cache
def _forwarding(key: str) -> httpx2.Headers:
    return httpx2.Headers({**_HEADERS, "Accept-Encoding": "identity", "Authorization": f"Bearer {key}"})


@lru_cache(1024)
def _parsed(url: str) -> httpx2.URL:
    return httpx2.URL(url)


def key_of(member: Member, environ: Mapping[str, str]) -> str:
    """The member's key from its variable; members that xspec starts itself need none."""
    return read_key(member.api_key_env, environ) if member.kind == "openai" else NO_KEY
