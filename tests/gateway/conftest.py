"""A laboratory for the gateway: a chat server on loopback as its upstream, the gateway in this process or its own."""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest

from xspec.experiment.gateway_execution import OpenGateway, open_gateway
from xspec.experiment.gateway_spec import compile_gateway
from xspec.records.executions import ExecutionFolder, executions_of
from xspec.spec.compose import compose
from xspec.spec.config import validate_config
from xspec.spec.store import Store

KEY = "canary-4711-Provider-Key-of-some-Length"
MESSAGES = [{"role": "user", "content": "hello"}]


def completion(content: str = "done", **fields: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": content}
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "small-2026-01-01",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14},
        **fields,
    }


def chunk(delta: Mapping[str, Any], finish: str | None = None, **fields: Any) -> bytes:
    """One server-sent event of a streamed reply."""
    choice = {"index": 0, "delta": dict(delta), "finish_reason": finish}
    data = {
        "id": "c",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "small-2026-01-01",
        "choices": [choice],
        **fields,
    }
    return b"data: " + json.dumps(data).encode() + b"\n\n"


def stream_of(*words: str, usage: bool = False) -> list[bytes]:
    """The events of a streamed reply."""
    total = {"prompt_tokens": 11, "completion_tokens": len(words), "total_tokens": 11 + len(words)}
    ends = [chunk({}, "stop")]
    if usage:
        ends.append(chunk({}, choices=[], usage=total))
    return [
        chunk({"role": "assistant"}),
        *(chunk({"content": word}) for word in words),
        *ends,
        b"data: [DONE]\n\n",
    ]


@dataclass
class Asked:
    """A request as it came upstream."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        parsed: dict[str, Any] = json.loads(self.body)
        return parsed


class Reply:
    """What the upstream is to do: answer whole, or in pieces, or break off. A piece may be something to wait for."""

    def __init__(
        self,
        body: Any = None,
        status: int = 200,
        *,
        pieces: list[Any] | None = None,
        breaks: bool = False,
        **headers: str,
    ) -> None:
        self.status = status
        self.body = (
            body
            if isinstance(body, bytes)
            else json.dumps(body if body is not None else completion()).encode()
        )
        self.pieces = pieces
        self.breaks = breaks
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


@dataclass
class Upstream:
    """A provider on loopback. `answer` gets the number of the request and the request."""

    answer: Any = field(default_factory=lambda: lambda n, asked: Reply())
    asked: list[Asked] = field(default_factory=list)
    port: int = 0
    open: int = 0
    """Requests that are being answered."""
    come: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a request has come."""
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a caller went away in the middle."""

    @asynccontextmanager
    async def serving(self) -> AsyncIterator["Upstream"]:
        tasks: set[asyncio.Task[None]] = set()

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            tasks.add(asyncio.ensure_future(self._serve(reader, writer)))

        server = await asyncio.start_server(accept, "127.0.0.1", self.port, backlog=1024)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                pairs = [line.partition(": ") for line in head[1:] if line]
                headers = {name.lower(): value for name, _, value in pairs}
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                self.asked.append(Asked(head[0].split(" ")[1], headers, body))
                self.open += 1
                self.come.set()
                try:
                    reply = self.answer(len(self.asked) - 1, self.asked[-1])
                    if not await self._send(reply, reader, writer):
                        return
                finally:
                    self.open -= 1
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _send(self, reply: Reply, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        kind = "text/event-stream" if reply.pieces is not None else "application/json"
        headers = {"content-type": kind, **reply.headers}
        size = (
            {"transfer-encoding": "chunked"}
            if reply.pieces is not None
            else {"content-length": str(len(reply.body))}
        )
        lines = [f"HTTP/1.1 {reply.status} X", *(f"{n}: {v}" for n, v in {**headers, **size}.items())]
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n")
        if reply.pieces is None:
            writer.write(reply.body)
            await writer.drain()
            return True
        leaving = asyncio.ensure_future(reader.read(1))
        try:
            for piece in reply.pieces:
                if isinstance(piece, bytes):
                    writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                    await writer.drain()
                else:
                    waiting = asyncio.ensure_future(piece())
                    await asyncio.wait((waiting, leaving), return_when=asyncio.FIRST_COMPLETED)
                    waiting.cancel()
                if leaving.done():
                    self.gone.set()
                    return False
        finally:
            leaving.cancel()
        if reply.breaks:
            writer.transport.abort()
            return False
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return False


class Kit:
    """Everything a test of the gateway needs, in one place."""

    KEY, MESSAGES = KEY, MESSAGES
    Reply, Upstream = Reply, Upstream
    completion = staticmethod(completion)
    chunk = staticmethod(chunk)
    stream_of = staticmethod(stream_of)

    def __init__(self, root: Path) -> None:
        self.root = root
        self.cwd = root / "cwd"
        self.cwd.mkdir()
        self.store = Store(root / "store")

    def overrides(self, port: int, *more: str) -> list[str]:
        return [
            "benchmark=external",
            "provider=openai_compatible",
            f"provider.base_url=http://127.0.0.1:{port}/v1",
            "provider.model=small-2026-01-01",
            "provider.api_key_env=UPSTREAM_KEY",
            "route.retry.backoff_s=0",
            *more,
        ]

    @asynccontextmanager
    async def opened(
        self, upstream: Upstream, *more: str, enforce: Any = "fill", attempts: int = 256
    ) -> AsyncIterator[OpenGateway]:
        """A gateway in this process."""
        config = validate_config(compose(self.overrides(upstream.port, *more)))
        compiled = await compile_gateway(config, self.store, enforce)
        os.environ["UPSTREAM_KEY"] = KEY
        try:
            async with open_gateway(self.store, compiled, attempts=attempts) as gateway:
                yield gateway
        finally:
            del os.environ["UPSTREAM_KEY"]

    @asynccontextmanager
    async def both(
        self, answer: Any, *more: str, **options: Any
    ) -> AsyncIterator[tuple[Upstream, OpenGateway, openai.AsyncOpenAI]]:
        """An upstream, a gateway to it, and a client of the gateway."""
        upstream = Upstream(answer)
        async with (
            upstream.serving(),
            self.opened(upstream, *more, **options) as gateway,
            self.client(gateway) as client,
        ):
            yield upstream, gateway, client

    def client(self, gateway: OpenGateway, **options: Any) -> openai.AsyncOpenAI:
        return openai.AsyncOpenAI(**{"api_key": gateway.token, "base_url": gateway.base_url, **options})

    async def post(
        self, gateway: OpenGateway, body: Any, path: str = "/chat/completions", **headers: str
    ) -> httpx2.Response:
        """A request as it stands, and the answer as it comes."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        async with httpx2.AsyncClient(trust_env=False, timeout=30) as http:
            return await http.post(
                gateway.base_url + path,
                content=data,
                headers={
                    "authorization": f"Bearer {gateway.token}",
                    "content-type": "application/json",
                    **named,
                },
            )

    def execution(self) -> ExecutionFolder:
        """The only execution of the store."""
        (folder,) = executions_of(self.store)
        return folder

    def rows(self, *kinds: str) -> list[dict[str, Any]]:
        return list(self.execution().rows(*kinds))

    def environ(self, **variables: str) -> dict[str, str]:
        kept = {n: os.environ[n] for n in ("PATH", "PYTHONPATH", "XSPEC_CONF", "TMPDIR") if n in os.environ}
        return {**kept, "HOME": str(self.cwd), "XSPEC_MLFLOW": "later", **variables}

    @contextmanager
    def program(self, text: str) -> Iterator[list[str]]:
        """A command that runs a Python program."""
        path = self.root / "program.py"
        path.write_text(textwrap.dedent(text))
        yield [sys.executable, str(path)]

    def start(self, *arguments: str, **variables: str) -> "subprocess.Popen[str]":
        """`python -m xspec` as a process of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "xspec", *arguments],
            cwd=self.cwd,
            env=self.environ(**{"UPSTREAM_KEY": KEY, **variables}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


@pytest.fixture
def kit(tmp_path: Path) -> Kit:
    return Kit(tmp_path)


@pytest.fixture(autouse=True)
def _own_pace(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No limit is shared with other tests."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with contextlib.suppress(KeyError):
        monkeypatch.delenv("OPENAI_BASE_URL")
