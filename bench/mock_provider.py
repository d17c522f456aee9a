"""A provider for the gateway's bench: always the same tool call, plain or streamed, and slow on request."""

import asyncio
import math
import random
import sys
import time
from typing import Any

import orjson

MODEL = "m-2026-01-01"
ARGUMENTS = '{"recipient": "GB29NWBK60161331926819", "amount": 12}'
LONGEST_S = 1.0
SLOW = "slow"
"""A request whose `user` says so is answered after 0.2 s to LONGEST_S, and told in the reply's id how long that was."""


def mock_provider() -> None:
    """Answers every POST alike, streamed if asked for; prints the port first. Ends with its stdin."""
    call = {"id": "call_1", "type": "function", "function": {"name": "search_emails", "arguments": ARGUMENTS}}
    usage = {"prompt_tokens": 9000, "completion_tokens": 30, "total_tokens": 9030}
    head: dict[str, Any] = {"id": "c", "created": 1, "model": MODEL, "system_fingerprint": "fp_1"}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    rest = {"object": "chat.completion", "choices": [choice], "usage": usage}

    def whole(slept: float = 0.0) -> bytes:
        body = orjson.dumps({**head, **rest, "id": f"slept {slept}"})
        lines = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
        return lines % len(body) + body

    at_once = whole()

    def event(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
        data = orjson.dumps({**head, "object": "chat.completion.chunk", "choices": choices})
        return b"data: " + data + b"\n\n"

    def piece(number: int) -> dict[str, Any]:
        part = ARGUMENTS[number * 3 : number * 3 + 3]
        return {"tool_calls": [{"index": 0, "function": {"arguments": part}}]}

    function = {"name": "search_emails", "arguments": ""}
    opened = {"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": function}]}
    count = math.ceil(len(ARGUMENTS) / 3)
    pieces = [
        event({"role": "assistant", "content": None}),
        event(opened),
        *(event(piece(number)) for number in range(count)),
    ]
    pieces += [event({}, "tool_calls"), b"data: [DONE]\n\n"]
    streamed = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    streamed += b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in pieces) + b"0\r\n\r\n"
    draws, slow = random.Random(1), f'"user":"{SLOW}"'.encode()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                lines = (await reader.readuntil(b"\r\n\r\n")).lower().split(b"\r\n")
                length = next(line for line in lines if line.startswith(b"content-length:"))
                asked = await reader.readexactly(int(length.split(b":")[1]))
                if slow in asked:
                    began = time.perf_counter()
                    await asyncio.sleep(draws.uniform(0.2, LONGEST_S))
                    writer.write(whole(time.perf_counter() - began))
                else:
                    writer.write(streamed if b'"stream":true' in asked else at_once)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def main() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        print(server.sockets[0].getsockname()[1], flush=True)
        await asyncio.to_thread(sys.stdin.read)

    asyncio.run(main())
