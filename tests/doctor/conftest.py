"""A provider on loopback with faults of set-up, and the quick benchmark of tests/experiment."""

import contextlib
import io
import json
import os
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from xspec.__main__ import main
from xspec.benchmarks import BENCHMARKS, Launch

LAB = Path(__file__).parents[1] / "experiment" / "lab_benchmark.py"
KEY = "canary-4711-Plain-Words-and-some-Length"
MODEL = "small-2026-01-01"


@dataclass
class Provider:
    """What it does differently from a healthy one. `limited`: the first so many chat requests get a 429."""

    path: str = "/v1/chat/completions"
    models: tuple[str, ...] | None = (MODEL, "large-2026-01-01")
    status: int = 200
    limited: int = 0
    served: tuple[str, ...] = ()
    upstreams: tuple[str, ...] = ()
    fingerprint: str | None = "fp_1"
    headers: Mapping[str, str] = field(default_factory=dict)
    skew_s: float = 0
    tools: bool = True
    streams: bool = True
    texts: tuple[str, ...] = ("A quiet whale.",)
    seen: list[tuple[str, str]] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    authorizations: set[str] = field(default_factory=set)
    port: int = 0

    def overrides(self, **changes: str) -> list[str]:
        """What points an experiment at this provider."""
        settings = {
            "provider": "openai_compatible",
            "provider.model": MODEL,
            "provider.base_url": f"http://127.0.0.1:{self.port}",
            "provider.api_key_env": "LAB_KEY",
            "route.retry.backoff_s": "0.01",
            "route.max_wait_s": "0.5",
            "workers": "2",
            **changes,
        }
        return [f"{name}={value}" for name, value in settings.items()]

    def reply(self, n: int, body: dict[str, Any]) -> tuple[int, Any]:
        if self.status != 200:
            return self.status, {"error": {"message": f"no: {KEY} is wrong", "code": "invalid_api_key"}}
        if n < self.limited:
            return 429, {"error": {"message": "slow down"}}
        if self.models is not None and body["model"] not in self.models and not self.served:
            return 404, {"error": {"message": "no such model", "code": "model_not_found"}}
        message: dict[str, Any] = {"role": "assistant", "content": self.texts[n % len(self.texts)]}
        names = [tool["function"]["name"] for tool in body.get("tools", [])]
        if self.tools and "get_weather" in names:
            function = {"name": "get_weather", "arguments": '{"city": "Lisbon"}'}
            message = {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "c1", "type": "function", "function": function}],
            }
        reply = {
            "id": "x",
            "object": "chat.completion",
            "model": self.served[n % len(self.served)] if self.served else body["model"],
            "system_fingerprint": self.fingerprint,
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 700, "completion_tokens": 20, "total_tokens": 720},
        }
        if self.upstreams:
            reply["provider"] = self.upstreams[n % len(self.upstreams)]
        return 200, reply

    @contextlib.contextmanager
    def serving(self) -> Iterator["Provider"]:
        outer, lock = self, threading.Lock()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                with lock:
                    outer.seen.append(("GET", self.path))
                    outer.authorizations.add(self.headers["authorization"])
                listed = outer.path.removesuffix("/chat/completions") + "/models"
                if outer.models is None or self.path != listed:
                    self.answer(404, {"error": {"message": "Not Found"}})
                else:
                    self.answer(200, {"data": [{"id": model} for model in outer.models]})

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                with lock:
                    n = len(outer.bodies)
                    outer.bodies.append(body)
                    outer.seen.append(("POST", self.path))
                    outer.authorizations.add(self.headers["authorization"])
                if self.path != outer.path:
                    self.answer(404, {"error": {"message": f"Invalid URL (POST {self.path})"}})
                elif body.get("stream") and outer.streams:
                    self.answer(200, b'data: {"choices": []}\n\ndata: [DONE]\n\n', "text/event-stream")
                else:
                    self.answer(*outer.reply(n, body))

            def answer(self, status: int, reply: Any, kind: str = "application/json") -> None:
                data = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
                self.send_response_only(status)
                self.send_header("date", formatdate(time.time() + outer.skew_s, usegmt=True))
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(data)))
                for name, value in outer.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

        server = Server(("127.0.0.1", 0), Handler)
        self.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            thread.join()
            server.server_close()


@dataclass
class Clinic:
    """Runs `doctor` in this process, with a store and a working directory of its own."""

    root: Path
    store: Path
    KEY = KEY
    MODEL = MODEL
    Provider = Provider

    def __call__(self, *arguments: str, **variables: str) -> tuple[int, list[str], str]:
        """Exit code, lines of standard output, and standard error."""
        environ = {
            n: os.environ[n] for n in ("PATH", "PYTHONPATH", "XSPEC_CONF", "TMPDIR") if n in os.environ
        }
        out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
        before = dict(os.environ)
        lab = ("benchmark.kind=lab", "benchmark.version='1'", "benchmark.exclude=[]", f"store={self.store}")
        os.environ.clear()
        os.environ.update({**environ, "HOME": str(self.root), "XDG_RUNTIME_DIR": str(self.root), **variables})
        try:
            with (
                contextlib.chdir(self.root),
                contextlib.redirect_stdout(out),
                contextlib.redirect_stderr(err),
            ):
                code = main(["doctor", *arguments, *lab])
        finally:
            os.environ.clear()
            os.environ.update(before)
        out.seek(0)
        return code, out.read().splitlines(), err.getvalue()


@pytest.fixture(scope="session", autouse=True)
def _lab_is_known() -> Iterator[None]:
    BENCHMARKS["lab"] = Launch(LAB)
    yield
    BENCHMARKS.pop("lab", None)


@pytest.fixture(scope="session")
def doctor_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("doctor") / "store"


@pytest.fixture
def clinic(tmp_path: Path, doctor_store: Path) -> Clinic:
    tmp_path.chmod(0o700)
    return Clinic(tmp_path, doctor_store)
