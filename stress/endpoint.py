"""A raw server on loopback, a spec with one member that points at it, and one call through the guarded route."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from xspec.errors import XspecError
from xspec.records.rows import AttemptEnded, AttemptStarted, Place
from xspec.route.client import Route
from xspec.route.conversation import Conversation, Pins, text_digest
from xspec.spec.canonical import canonical_bytes, digest_of

SYSTEM, INSTRUCTION = "You are careful.", "Say done."
ATTEMPTS = 2
TIMEOUT_S = 3.0

Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Called:
    """What became of a call: the text of its reply or error, the rows it left, the requests that arrived."""

    said: str
    outcome: str
    rows: list[AttemptStarted | AttemptEnded] = field(default_factory=list)
    requests: int = 0

    @property
    def errors(self) -> list[str | None]:
        return [row.error for row in self.rows if isinstance(row, AttemptEnded)]

    @property
    def balanced(self) -> bool:
        """Every attempt that was begun is ended."""
        return len(self.errors) * 2 == len(self.rows)


def completion(**fields: Any) -> bytes:
    """The body of an ordinary reply."""
    message = {"role": "assistant", "content": "done"}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    usage = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}
    plain = {
        "id": "c",
        "object": "chat.completion",
        "model": "m-2026-01-01",
        "choices": [choice],
        "usage": usage,
    }
    return orjson.dumps({**plain, **fields})


def head(length: int | None, *lines: bytes, status: int = 200) -> bytes:
    """A reply's head. `length` is its Content-Length, None for none."""
    own = [] if length is None else [b"content-length: %d" % length]
    return b"\r\n".join([b"HTTP/1.1 %d X" % status, *own, *lines]) + b"\r\n\r\n"


def http(body: bytes, *lines: bytes, status: int = 200) -> Answer:
    """An answer in one piece."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(head(len(body), *lines, status=status) + body)
        await writer.drain()

    return answer


async def call(
    folder: Path, answer: Answer, *, base_url: str | None = None, tls: ssl.SSLContext | None = None
) -> Called:
    """One call with two attempts at a server that answers every request so, or at another base URL."""
    called = Called("", "")
    async with _serving(answer, called, tls) as port:
        scheme = "http" if tls is None else "https"
        data = _spec(base_url or f"{scheme}://127.0.0.1:{port}/v1")
        path = folder / "spec.json"
        path.write_bytes(data)
        environ = {"STRESS_KEY": "stress-key-of-no-value"}
        route = Route(data, path, record=called.rows.append, environ=environ)
        pins = Pins(text_digest(SYSTEM), text_digest(INSTRUCTION), None)
        try:
            reply = await route.call(Conversation(SYSTEM, INSTRUCTION), pins, Place(0, "stress.task_0", 0, 0))
            called.outcome, called.said = "reply", orjson.dumps(reply.message).decode()
        except XspecError as error:
            called.outcome, called.said = type(error).__name__, str(error)
        except Exception as error:
            called.outcome, called.said = f"UNEXPECTED {type(error).__name__}", str(error)
        finally:
            await route.aclose()
    return called


@asynccontextmanager
async def _serving(answer: Answer, called: Called, tls: ssl.SSLContext | None) -> AsyncIterator[int]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                lines = (await reader.readuntil(b"\r\n\r\n")).lower().split(b"\r\n")
                length = next(int(line[15:]) for line in lines if line.startswith(b"content-length:"))
                await reader.readexactly(length)
                called.requests += 1
                await answer(writer)
        except (asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
            pass
        finally:
            writer.transport.abort()

    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.ensure_future(serve(reader, writer)))

    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _spec(base_url: str) -> bytes:
    digest = digest_of(b"stress")
    retry = {
        **{"max_attempts": ATTEMPTS, "backoff_s": 0, "backoff_base": 2, "backoff_max_s": 1},
        **{"statuses": [500, 502, 503], "timeouts": True, "connection_errors": True},
    }
    member = {
        **{"kind": "openai", "name": "main", "base_url": base_url, "path": "/chat/completions"},
        **{"model": "m-2026-01-01", "api_key_env": "STRESS_KEY"},
    }
    plain = {
        "scheme": 1,
        "benchmark": {
            **{"kind": "stress", "version": "1", "split": "all"},
            **{"tasks": ["stress.task_0"], "manifest": digest},
        },
        "agent": {
            **{"kind": "tool_loop", "version": 1, "max_steps": 5, "tool_timeout_s": 5},
            "prompt": digest,
        },
        "route": {
            **{"mode": "fixed", "members": [member], "timeout_s": TIMEOUT_S, "max_wait_s": 1},
            "retry": retry,
        },
        "sampling": {"temperature": 0},
        "drift": {"served_model": "invalidate", "upstream": "invalidate", "fingerprint": "record"},
        "guide": {"kind": "none"},
        "k": 1,
    }
    return canonical_bytes(plain)
