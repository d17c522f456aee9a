"""Length-prefixed JSON frames: four bytes big endian, then that many bytes of JSON with one object.

The worker reads and writes them on a blocking socket, xspec on asyncio streams. The JSON is plain ASCII, so
lone surrogates, which models do emit, travel unharmed.
"""

import asyncio
import json
import socket
import struct
from typing import Any

MAX_BYTES = 256 * 1024 * 1024
"""Largest payload, in bytes. A header that announces more is noise, not a frame."""

HEADER = struct.Struct(">I")

Message = dict[str, Any]


class FrameError(Exception):
    """The other side sent, or was about to be sent, something that is not a frame."""


class PayloadError(FrameError):
    """A whole frame whose payload is not a JSON object. The stream is still in step."""


def encode(message: Message) -> bytes:
    """Header and payload. Raises FrameError for what JSON cannot say, or says in more than MAX_BYTES."""
    try:
        payload = json.dumps(message, separators=(",", ":")).encode("ascii")
    except (TypeError, ValueError, RecursionError) as error:
        raise FrameError(f"the message has no JSON form: {error}") from None
    if len(payload) > MAX_BYTES:
        raise FrameError(f"the message has {len(payload)} bytes; a frame holds at most {MAX_BYTES}")
    return HEADER.pack(len(payload)) + payload


def payload_size(header: bytes) -> int:
    """Bytes that follow the header. Raises FrameError above MAX_BYTES."""
    (size,) = HEADER.unpack(header)
    if size > MAX_BYTES:
        raise FrameError(f"a header announces {size} bytes; a frame holds at most {MAX_BYTES}")
    return int(size)


def decode(payload: bytes) -> Message:
    """The object in a payload. Raises PayloadError."""
    try:
        message = json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise PayloadError(f"a frame of {len(payload)} bytes is not JSON: {error}") from None
    if not isinstance(message, dict):
        raise PayloadError(f"a frame holds a JSON {type(message).__name__}; it must be an object")
    return message


def write_frame(sock: socket.socket, message: Message) -> None:
    """Sends one frame on a blocking socket."""
    sock.sendall(encode(message))


def read_frame(sock: socket.socket) -> Message | None:
    """The next frame of a blocking socket; None if it ended between frames, FrameError if within one."""
    header = read_exactly(sock, HEADER.size)
    return None if header is None else read_payload(sock, header)


def read_payload(sock: socket.socket, header: bytes) -> Message:
    """The rest of a frame whose header was read already."""
    size = payload_size(header)
    payload = read_exactly(sock, size) if size else b""
    if payload is None:
        raise FrameError(f"torn frame: the stream ended before a payload of {size} bytes")
    return decode(payload)


def read_exactly(sock: socket.socket, size: int, begun: bytes = b"") -> bytes | None:
    """`size` bytes, of which `begun` were read already; None if the stream ends before the first of them."""
    buffer = bytearray(size)
    buffer[: len(begun)] = begun
    view, got = memoryview(buffer), len(begun)
    while got < size:
        count = sock.recv_into(view[got:])
        if count == 0:
            if got == 0:
                return None
            raise FrameError(f"torn frame: the stream ended after {got} of {size} bytes")
        got += count
    return bytes(buffer)


async def send(writer: asyncio.StreamWriter, message: Message) -> None:
    """Sends one frame on an asyncio stream."""
    writer.write(encode(message))
    await writer.drain()


async def receive(reader: asyncio.StreamReader) -> Message | None:
    """The next frame of an asyncio stream; None if it ended between frames, FrameError if within one."""
    try:
        header = await reader.readexactly(HEADER.size)
    except asyncio.IncompleteReadError as error:
        if not error.partial:
            return None
        raise FrameError(f"torn frame: the stream ended after {len(error.partial)} header bytes") from None
    size = payload_size(header)
    try:
        return decode(await reader.readexactly(size))
    except asyncio.IncompleteReadError as error:
        raise FrameError(f"torn frame: the stream ended after {len(error.partial)} of {size} bytes") from None
