"""The gateway as an ASGI application: who may call, which endpoint answers, and what ends with the caller."""

import asyncio
import hmac
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

from xspec.gateway.answer import Answer, Send
from xspec.gateway.attribution import HEADER, Attribution
from xspec.gateway.chat_completions import chat_completions
from xspec.gateway.endpoint import Endpoint, Frozen, Incoming
from xspec.gateway.models_list import PATH as MODELS
from xspec.gateway.models_list import model_named, models_list
from xspec.gateway.refusals import STOP, error_body

MAX_BODY = 64 * 2**20
"""Bytes of a request body."""

ENDPOINTS: dict[str, tuple[str, Endpoint]] = {
    "/v1/chat/completions": ("POST", chat_completions),
    MODELS: ("GET", models_list),
    f"{MODELS}/": ("GET", model_named),
}
"""Path → method and endpoint: one file each, and one line here. One that ends in a slash has all paths below it."""

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


class CallerGone(Exception):
    """The caller went away before its request was whole."""


class GatewayApp:
    """Answers whoever has the token. `failed` is told of what no call can go on after: a full disk, or a mistake."""

    def __init__(
        self, frozen: Frozen, attribution: Attribution, token: str, failed: Callable[[BaseException], None]
    ) -> None:
        self._frozen = frozen
        self._attribution = attribution
        self._token = token.encode()
        self._failed = failed
        self._running: dict[asyncio.Task[Any], Answer] = {}

    async def aclose(self) -> None:
        """Ends every call that is under way; each leaves its rows and, if it has no answer yet, gets a refusal."""
        running = dict(self._running)
        for task, answer in running.items():
            answer.cut_off = True
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        me = asyncio.current_task()
        assert me is not None
        answer = self._running[me] = Answer(send)
        try:
            await self._answer(scope, receive, answer)
        except CallerGone:
            pass
        except asyncio.CancelledError:
            if answer.cut_off and not answer.started:
                await answer.whole(STOP, error_body("it was closed during this call", "closed"), final=True)
            # Else the caller went away, or its stream is under way: uvicorn cuts the connection.
        except Exception as error:
            self._failed(error)
            if not answer.started:
                body = error_body(f"{type(error).__name__} in the gateway", "internal_error")
                await answer.whole(500, body, final=True)
        finally:
            del self._running[me]

    async def _answer(self, scope: Mapping[str, Any], receive: Receive, answer: Answer) -> None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        if not self._may(headers):
            said = "the token is missing or wrong; OPENAI_API_KEY of this execution holds it"
            await answer.whole(401, error_body(said, "invalid_token"), final=True)
            return
        attributed = self._attribution.of(scope["path"], headers.get(HEADER))
        method, endpoint = _endpoint_at(attributed.path)
        if endpoint is None:
            known = ", ".join(f"{how} {path}" for path, (how, _) in ENDPOINTS.items())
            said = f"nothing answers at {attributed.path[:100]}; there are {known}"
            await answer.whole(404, error_body(said, "not_found"), final=True)
        elif scope["method"] != method:
            await answer.whole(405, error_body(f"this path takes {method}", "wrong_method"), final=True)
        else:
            body = await _body(receive)
            if body is None:
                said = f"a request has at most {MAX_BODY // 2**20} MB"
                await answer.whole(413, error_body(said, "too_large"), final=True)
                return
            incoming = Incoming(method, attributed, headers, body)
            await _while_there(receive, endpoint(self._frozen, incoming, answer))

    def _may(self, headers: Mapping[str, str]) -> bool:
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        given = bearer if scheme.lower() == "bearer" else headers.get("x-api-key", "")
        return hmac.compare_digest(given.strip().encode("latin-1", "replace"), self._token)


def _endpoint_at(path: str) -> tuple[str, Endpoint | None]:
    if path in ENDPOINTS:
        return ENDPOINTS[path]
    above = (found for below, found in ENDPOINTS.items() if below.endswith("/") and path.startswith(below))
    return next(above, ("", None))


async def _body(receive: Receive) -> bytes | None:
    """The whole body, None if it is too large. Raises CallerGone."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise CallerGone
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > MAX_BODY:
            return None
        if not message.get("more_body", False):
            return b"".join(parts)


async def _while_there(receive: Receive, work: Awaitable[None]) -> None:
    """Does the work, and gives it up as soon as the caller is gone."""
    me = asyncio.current_task()
    assert me is not None

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        me.cancel()

    watching = asyncio.ensure_future(watch())
    try:
        await work
    finally:
        watching.cancel()
