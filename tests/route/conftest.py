"""A laboratory: a raw HTTP server on loopback, a spec for it, and a route whose sleeping costs nothing."""

import asyncio
import copy
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import pytest

from xspec.records.rows import AttemptEnded, AttemptStarted, Place
from xspec.route.client import Route
from xspec.route.conversation import Conversation, Pins, Tools, text_digest
from xspec.spec.canonical import canonical_bytes

KEY = "sk-test-0123456789abcdefghij"
SYSTEM = "You are careful."
INSTRUCTION = "Pay the bill."
NOW = 1_800_000_000.0
DIGEST = "sha256:" + "0" * 64
SCHEMAS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": "Does one thing.",
            "parameters": {"type": "object", "properties": {"amount": {"type": "number", "minimum": 1e-07}}},
        },
    }
    for name in ("pay", "read_file")
]
SPEC: dict[str, Any] = {
    "scheme": 1,
    "benchmark": {"kind": "lab", "version": "1", "split": "all", "tasks": ["lab.task_0"], "manifest": DIGEST},
    "agent": {"kind": "tool_loop", "version": 1, "max_steps": 10, "tool_timeout_s": 10, "prompt": DIGEST},
    "route": {
        "mode": "fixed",
        "members": [],
        "timeout_s": 5,
        "max_wait_s": 60,
        "retry": {
            "max_attempts": 3,
            "backoff_s": 1,
            "backoff_base": 2,
            "backoff_max_s": 3,
            "statuses": [500, 502, 503],
            "timeouts": True,
            "connection_errors": True,
        },
    },
    "sampling": {"temperature": 0, "seed": 7},
    "drift": {"served_model": "invalidate", "upstream": "invalidate", "fingerprint": "record"},
    "guide": {"kind": "none"},
    "k": 2,
}


@dataclass
class Request:
    line: str
    headers: list[tuple[str, str]]
    body: bytes

    @property
    def target(self) -> str:
        return self.line.split(" ")[1]

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key == name), None)


Answer = Callable[[int, Request], bytes | Awaitable[bytes | None] | None]


@dataclass
class Server:
    """Keeps every request it read. `answer` gives the raw bytes of a reply, or None to cut the connection."""

    answer: Answer
    requests: list[Request] = field(default_factory=list)
    port: int = 0
    serving: set[asyncio.Task[None]] = field(default_factory=set)

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.serving.add(asyncio.ensure_future(self.serve(reader, writer)))

    async def close(self) -> None:
        for task in self.serving:
            task.cancel()
        await asyncio.gather(*self.serving, return_exceptions=True)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                pairs = [line.partition(": ") for line in head[1:] if line]
                headers = [(name.lower(), value) for name, _, value in pairs]
                length = int(next((value for name, value in headers if name == "content-length"), "0"))
                request = Request(head[0], headers, await reader.readexactly(length))
                self.requests.append(request)
                data = self.answer(len(self.requests) - 1, request)
                if isinstance(data, Awaitable):
                    data = await data
                if data is None:
                    break
                if isinstance(data, list):
                    for part in data:
                        writer.write(part)
                        await writer.drain()
                        await asyncio.sleep(0.03)
                else:
                    writer.write(data)
                    await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


def http(status: int, body: bytes | dict[str, Any] = b"", **headers: str) -> bytes:
    """A raw reply. Underscores in header names stand for hyphens."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} X", f"content-length: {len(data)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


def completion(content: str = "done", **fields: Any) -> dict[str, Any]:
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m-1",
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
        ],
        "usage": {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14},
        **fields,
    }


def error(message: str, code: str | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", "code": code}}


OK = http(200, completion())


def in_turn(*replies: Any) -> Answer:
    """The replies one after another, then OK for ever."""
    return lambda n, request: replies[n] if n < len(replies) else OK


class Lab:
    """Everything a test of the route needs, in one place."""

    KEY, SYSTEM, INSTRUCTION, NOW, SCHEMAS, OK = KEY, SYSTEM, INSTRUCTION, NOW, SCHEMAS, OK
    http = staticmethod(http)
    completion = staticmethod(completion)
    error = staticmethod(error)
    in_turn = staticmethod(in_turn)

    def __init__(self, folder: Path) -> None:
        self.path = folder / "spec.json"
        self.rows: list[AttemptStarted | AttemptEnded] = []
        self.sleeps: list[float] = []
        self.settled: list[tuple[str, str, str]] = []
        self.environ = {"LAB_KEY": KEY}
        self.tools = Tools(SCHEMAS)
        self.pins = Pins(text_digest(SYSTEM), text_digest(INSTRUCTION), self.tools.digest)
        self.place = Place(0, "lab.task_0", 0, 0)

    def member(self, port: int, **changes: Any) -> dict[str, Any]:
        member = {
            "kind": "openai",
            "name": "a",
            "base_url": f"http://127.0.0.1:{port}/v1",
            "path": "/chat/completions",
            "model": "m-1",
            "api_key_env": "LAB_KEY",
        }
        return {**member, **changes}

    def spec(self, members: list[dict[str, Any]], **changes: Mapping[str, Any]) -> bytes:
        """Canonical bytes; `changes` are merged into the sections of that name."""
        spec = copy.deepcopy(SPEC)
        spec["route"]["members"] = members
        for section, fields in changes.items():
            for name, value in fields.items():
                if isinstance(value, dict) and isinstance(spec[section].get(name), dict):
                    spec[section][name].update(value)
                else:
                    spec[section][name] = value
        return canonical_bytes(spec)

    def conversation(self) -> Conversation:
        return Conversation(SYSTEM, INSTRUCTION, self.tools)

    async def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)

    def make(self, data: bytes, **options: Any) -> Route:
        self.rows.clear()
        self.path.write_bytes(data)
        chosen = {
            "environ": self.environ,
            "record": self.rows.append,
            "sleep": self.sleep,
            "clock": lambda: NOW,
            "settle": lambda *settled: self.settled.append(settled),
            **options,
        }
        return Route(data, self.path, **chosen)

    @asynccontextmanager
    async def served(self, answer: Answer | bytes = OK) -> AsyncIterator[Server]:
        server = Server(answer if callable(answer) else lambda n, request: answer)
        listener = await asyncio.start_server(server.accept, "127.0.0.1", 0)
        server.port = listener.sockets[0].getsockname()[1]
        try:
            yield server
        finally:
            listener.close()
            await server.close()

    @asynccontextmanager
    async def routed(
        self,
        answer: Answer | bytes = OK,
        *,
        member: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        **changes: Any,
    ) -> AsyncIterator[tuple[Server, Route]]:
        """A server, and a route to it with one member."""
        async with self.served(answer) as server:
            route = self.make(
                self.spec([self.member(server.port, **(member or {}))], **changes), **(options or {})
            )
            try:
                yield server, route
            finally:
                await route.aclose()

    async def call(self, route: Route, **changes: Any) -> Any:
        return await route.call(
            changes.get("conversation") or self.conversation(), changes.get("pins", self.pins), self.place
        )

    @property
    def ended(self) -> list[AttemptEnded]:
        return [row for row in self.rows if isinstance(row, AttemptEnded)]

    def counts(self, server: Server) -> tuple[int, int, int]:
        """Requests that arrived, rows of attempts begun, rows of attempts ended."""
        return len(server.requests), len(self.rows) - len(self.ended), len(self.ended)

    @staticmethod
    def parsed(request: Request) -> Any:
        return orjson.loads(request.body)


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)
