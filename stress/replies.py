"""Servers that answer as none should: each has an outcome that is expected, and says plainly what was wrong."""

import asyncio
import gzip
import ssl
import subprocess
import zlib
from dataclasses import dataclass
from pathlib import Path

from stress.endpoint import ATTEMPTS, Answer, Called, call, completion, head, http
from stress.line import Line
from xspec.route.transport import REPLY_LIMIT

MB = 1024 * 1024


@dataclass(frozen=True)
class Case:
    """`error` is the token of every attempt (None: a usable reply), `says` a part of the message."""

    what: str
    answer: Answer
    error: str | None
    says: str = ""
    outcome: str = "CallFailed"
    attempts: int = ATTEMPTS
    base_url: str | None = None
    tls: bool = False


def run(root: Path) -> list[Line]:
    """Every case, one after another."""
    return [
        _line(case, asyncio.run(call(root, case.answer, base_url=case.base_url, tls=_tls(root, case))))
        for case in _cases()
    ]


def _line(case: Case, called: Called) -> Line:
    outcome = "reply" if case.error is None else case.outcome
    attempts = 1 if case.error is None else case.attempts
    arrived = case.base_url is not None or case.tls or called.requests == attempts
    ok = (
        called.outcome == outcome
        and called.errors == [case.error] * attempts
        and case.says in called.said
        and called.balanced
        and arrived
        and len(called.said) < 2_000
    )
    expected = f"{outcome}, {case.error or 'usable'} x {attempts}" + (f", “{case.says}”" if case.says else "")
    said = called.said.partition("the last: ")[2] or called.said
    return Line("replies", case.what, expected, f"{called.outcome}, {called.errors}: {said[:160]}", ok)


def _cases() -> list[Case]:
    ok = completion()
    big = b" " * (100 * MB) + ok
    bomb = gzip.compress(b" " * (1024 * MB), 9)
    choice = b'{"index":0,"message":{"role":"assistant","content":"done"},"finish_reason":"stop"}'
    many, fewer = (b",".join([choice] * count) for count in (10**6, 300_000))
    tool = b'{"id":"t","type":"function","function":{"name":"f","arguments":"{}"}}'
    calls = b",".join([tool] * 10**6)
    return [
        Case("name that no DNS knows", http(ok), "connection", "main", base_url="http://nowhere.invalid/v1"),
        Case("certificate nobody vouches for", http(ok), "connection", "CERTIFICATE_VERIFY_FAILED", tls=True),
        Case("headers without end", _dripping, "timeout", "no whole reply within"),
        Case("headers without end, fast", _flooding, "connection", "failed"),
        Case("100 Continue without end", _continuing, "timeout", "no whole reply within"),
        Case("body that drips", _dripping_body, "timeout", "no whole reply within"),
        Case("100 MB reply", http(big), "malformed_reply", f"more than {REPLY_LIMIT} bytes"),
        Case(
            "1 GB in 1 MB of gzip, unasked",
            http(bomb, b"content-encoding: gzip"),
            "malformed_reply",
            "more than",
        ),
        Case(
            "the same in an error reply",
            http(bomb, b"content-encoding: gzip", status=500),
            "malformed_reply",
            "more than",
        ),
        Case("gzip unasked", http(gzip.compress(ok), b"content-encoding: gzip"), None),
        Case("deflate unasked", http(zlib.compress(ok), b"content-encoding: deflate"), None),
        Case("claims brotli", http(ok, b"content-encoding: br"), "malformed_reply", "content-encoding br"),
        Case("claims zstd", http(ok, b"content-encoding: zstd"), "malformed_reply", "content-encoding zstd"),
        Case("claims gzip, is none", http(ok, b"content-encoding: gzip"), "malformed_reply", "do not unfold"),
        Case(
            "gzip twice over",
            http(ok, b"content-encoding: gzip, gzip"),
            "malformed_reply",
            "content-encoding gzip, gzip",
        ),
        Case(
            "gzip cut off",
            http(gzip.compress(ok)[:-30], b"content-encoding: gzip"),
            "malformed_reply",
            "not JSON",
        ),
        Case("JSON called text/html", http(ok, b"content-type: text/html"), None),
        Case(
            "HTML called JSON",
            http(b"<html>login</html>", b"content-type: application/json"),
            "malformed_reply",
            "not JSON",
        ),
        Case(
            "event stream, unasked",
            http(b"data: {}\n\n", b"content-type: text/event-stream"),
            "malformed_reply",
            "not JSON",
        ),
        Case(
            "charset that only raises, on an error",
            http(b"{}", b"content-type: a/b; charset=undefined", status=500),
            "server_error",
            "500",
        ),
        Case(
            "charset idna, on an error",
            http(b"\xff..", b"content-type: a/b; charset=idna", status=503),
            "server_error",
            "503",
        ),
        Case("content-type twice", http(ok, b"content-type: a/b", b"content-type: application/json"), None),
        Case("content-length twice, alike", http(ok, b"content-length: %d" % len(ok)), None),
        Case("content-length twice, unlike", http(ok, b"content-length: 7"), "connection", "Content-Length"),
        Case(
            "content-encoding twice",
            http(ok, b"content-encoding: gzip", b"content-encoding: br"),
            "malformed_reply",
            "content-encoding",
        ),
        Case("cookies", http(ok, b"set-cookie: a=b", b"set-cookie: c=d"), None),
        Case(
            "10^6 choices",
            http(completion(choices=[]).replace(b"[]", b"[" + many + b"]")),
            "malformed_reply",
            "more than",
        ),
        Case("300,000 choices", http(completion(choices=[]).replace(b"[]", b"[" + fewer + b"]")), None),
        Case(
            "10^6 tool calls",
            http(ok.replace(b'"done"', b'null,"tool_calls":[' + calls + b"]")),
            "malformed_reply",
            "more than",
        ),
        Case("JSON nested 10^6 deep", http(b"[" * 10**6), "malformed_reply", "not JSON"),
        Case(
            "message nested 253 deep",
            http(ok.replace(b'"done"', b"[" * 253 + b"]" * 253)),
            "malformed_reply",
            "cannot be sent back",
        ),
        Case(
            "error nested 1,000 deep",
            http(b'{"error":' + b"[" * 1000 + b"]" * 1000 + b"}", status=500),
            "server_error",
            "nested",
        ),
        Case(
            "an integer of 10^5 digits",
            http(ok.replace(b'"done"', b"9" * 10**5)),
            "malformed_reply",
            "not JSON",
        ),
        Case(
            "429 that asks for 10^300 s",
            http(b"{}", b"retry-after: 1e300", status=429),
            "rate_limited",
            "429",
            attempts=1,
        ),
        Case(
            "redirect to https",
            http(b"", b"location: https://127.0.0.1:1/", status=308),
            "redirect",
            "not followed",
            "RouteStopped",
            1,
        ),
        Case("status 999", http(b"", status=999), "server_error", "999", attempts=1),
        Case("bytes that are no HTTP", _noise, "connection", "failed"),
        Case("nothing, then the end", _nothing, "connection", "failed"),
    ]


async def _dripping(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 X\r\n")
    while True:
        writer.write(b"x-more: 1\r\n")
        await writer.drain()
        await asyncio.sleep(0.3)


async def _flooding(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 X\r\n")
    while True:
        writer.write(b"x-more: 1\r\n" * 10_000)
        await writer.drain()


async def _continuing(writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        await writer.drain()
        await asyncio.sleep(0.01)


async def _dripping_body(writer: asyncio.StreamWriter) -> None:
    writer.write(head(10**6))
    while True:
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.3)


async def _noise(writer: asyncio.StreamWriter) -> None:
    writer.write(bytes(range(256)) * 16)
    await writer.drain()
    writer.close()


async def _nothing(writer: asyncio.StreamWriter) -> None:
    writer.close()


def _tls(root: Path, case: Case) -> ssl.SSLContext | None:
    """A server's context with a certificate that it signed itself."""
    if not case.tls:
        return None
    key, certificate = root / "key.pem", root / "certificate.pem"
    if not key.exists():
        subprocess.run(
            [
                *(
                    "openssl",
                    "req",
                    "-x509",
                    "-newkey",
                    "rsa:2048",
                    "-nodes",
                    "-days",
                    "2",
                    "-subj",
                    "/CN=127.0.0.1",
                ),
                *("-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)),
            ],
            check=True,
            capture_output=True,
        )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context
