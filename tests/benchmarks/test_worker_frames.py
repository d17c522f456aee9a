"""Frames: what goes in comes out, and what is not a frame is refused."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterator

import pytest

from xspec.benchmarks import frames

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    one, other = socket.socketpair()
    with one, other:
        yield one, other


MESSAGES: list[frames.Message] = [
    {},
    {"text": "naïve 日本 \ud83d", "n": 1.5, "none": None, "list": [1, {"a": True}]},
    {"long": "x" * 60_000},
]


@pytest.mark.parametrize("message", MESSAGES)
def test_blocking_round_trip(pair: Pair, message: frames.Message) -> None:
    frames.write_frame(pair[0], message)
    frames.write_frame(pair[0], {"next": 1})
    assert frames.read_frame(pair[1]) == message
    assert frames.read_frame(pair[1]) == {"next": 1}


@pytest.mark.parametrize("message", MESSAGES)
def test_asyncio_reads_what_a_blocking_socket_wrote(pair: Pair, message: frames.Message) -> None:
    frames.write_frame(pair[0], message)
    assert _receive(pair) == message


def _receive(pair: Pair, then: Callable[[], None] = lambda: None) -> frames.Message | None:
    async def receive() -> frames.Message | None:
        reader, writer = await asyncio.open_unix_connection(sock=pair[1])
        then()
        try:
            return await frames.receive(reader)
        finally:
            writer.close()
            await writer.wait_closed()

    return asyncio.run(receive())


def test_a_message_larger_than_the_socket_buffer_arrives_whole() -> None:
    async def exchange() -> None:
        one, other = socket.socketpair()
        reader, writer = await asyncio.open_unix_connection(sock=one)
        other.setblocking(True)
        message = {"long": "y" * 5_000_000}
        sent: Awaitable[None] = asyncio.to_thread(frames.write_frame, other, message)
        received, _ = await asyncio.gather(frames.receive(reader), sent)
        assert received == message
        writer.close()
        await writer.wait_closed()
        other.close()

    asyncio.run(exchange())


def test_a_closed_stream_is_the_end_and_not_an_error(pair: Pair) -> None:
    pair[0].close()
    assert frames.read_frame(pair[1]) is None
    assert _receive(pair) is None


TORN = [b"\x00\x00", b"\x00\x00\x00\x08", b'\x00\x00\x00\x08{"a"']


@pytest.mark.parametrize("data", TORN)
def test_a_torn_frame_is_an_error(data: bytes) -> None:
    for read in (lambda pair: frames.read_frame(pair[1]), _receive):
        one, other = socket.socketpair()
        with one, other:
            one.sendall(data)
            one.close()
            with pytest.raises(frames.FrameError, match="torn frame"):
                read((one, other))


def test_an_oversized_header_is_refused_before_anything_is_read(pair: Pair) -> None:
    pair[0].sendall(b"\xff\xff\xff\xff")
    with pytest.raises(frames.FrameError, match="announces 4294967295 bytes"):
        frames.read_frame(pair[1])
    pair[0].sendall(b"\xff\xff\xff\xff")
    with pytest.raises(frames.FrameError, match="announces 4294967295 bytes"):
        _receive(pair)


def test_an_oversized_message_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "MAX_BYTES", 20)
    with pytest.raises(frames.FrameError, match="at most 20"):
        frames.encode({"text": "more than twenty bytes"})


def test_what_json_cannot_say_is_refused() -> None:
    nested: frames.Message = {}
    for _ in range(100_000):
        nested = {"a": nested}
    for message in ({"set": {1}}, nested):
        with pytest.raises(frames.FrameError, match="no JSON form"):
            frames.encode(message)
    while nested:  # taken apart by hand: freeing it at once would recurse as deeply
        nested = nested["a"]


@pytest.mark.parametrize("payload", [b"[1]", b"{", b"\xff", b'{"a":' * 100_000])
def test_a_whole_frame_that_is_no_object_leaves_the_stream_in_step(pair: Pair, payload: bytes) -> None:
    pair[0].setblocking(False)
    pair[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2_000_000)
    pair[0].setblocking(True)
    pair[0].settimeout(5)
    import threading

    data = frames.HEADER.pack(len(payload)) + payload + frames.encode({"next": 1})
    sender = threading.Thread(target=pair[0].sendall, args=(data,))
    sender.start()
    with pytest.raises(frames.PayloadError):
        frames.read_frame(pair[1])
    assert frames.read_frame(pair[1]) == {"next": 1}
    sender.join()
