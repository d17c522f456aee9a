"""A guide from trials of a provider that charges: asked first, every call pinned, and its key nowhere in the store."""

import io
import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from xspec.__main__ import main
from xspec.records.executions import executions_of
from xspec.spec.store import Store

KEY = "canary-4711-Provider-Key-of-some-Length"
MODEL = "small-2026-01-01"
TASKS = "banking.user_task_3,banking.user_task_4"
RULE = {
    "content": "Read the transactions before you pay.",
    "rationale": "Replies differ.",
    "category": "strategy",
}
RULE |= {"trigger": "A payment is due.", "implementation_steps": ["Call get_most_recent_transactions."]}


def called(name: str) -> dict[str, Any]:
    function = {"name": name, "arguments": "{}" if name == "get_iban" else '{"n": 5}'}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": function}],
    }


def replies_to(body: dict[str, Any]) -> list[dict[str, Any]]:
    """One step of a tool, then an answer. Asked for samples it is of two minds; asked for rules it writes one."""
    if "tools" not in body:
        return [{"role": "assistant", "content": json.dumps({"guidelines": [RULE]})}]
    if any(message["role"] == "tool" for message in body["messages"]):
        return [{"role": "assistant", "content": "Done."}] * body.get("n", 1)
    return [called(("get_most_recent_transactions", "get_iban")[i % 2]) for i in range(body.get("n", 1))]


@contextmanager
def provider() -> Iterator[tuple[int, list[tuple[str, dict[str, Any]]]]]:
    """Port of a server on loopback, and what it was asked: (authorization, body)."""
    asked: list[tuple[str, dict[str, Any]]] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            asked.append((self.headers["authorization"], body))
            choices = [
                {
                    "index": i,
                    "message": message,
                    "finish_reason": "tool_calls" if "tool_calls" in message else "stop",
                }
                for i, message in enumerate(replies_to(body))
            ]
            usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
            whole = {"id": "c", "object": "chat.completion", "created": 1, "model": MODEL}
            data = json.dumps({**whole, "choices": choices, "usage": usage}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server.server_address[1], asked
        finally:
            server.shutdown()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_guide_from_a_paid_provider(
    altk_environment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("PAID_KEY", KEY)
    with provider() as (port, asked):
        address = ["provider=openai_compatible", f"provider.base_url=http://127.0.0.1:{port}/v1"]
        named = [
            f"provider.model={MODEL}",
            "provider.api_key_env=PAID_KEY",
            f"benchmark.tasks=[{TASKS}]",
            "k=1",
        ]
        assert main([*address, *named]) == 0, capsys.readouterr().err
        store = Store(tmp_path / "mlruns")
        (played,) = executions_of(store)
        source = store.spec(played.info.spec_id)
        command = [
            "guide",
            "generate",
            "--from",
            played.path.name,
            "-o",
            "guide.json",
            "--samples",
            "2",
            "--runs",
            "0",
        ]
        trials = len(asked)

        for answer, refusal in (
            (io.StringIO("y\n"), "there is no terminal to ask; add --yes"),
            (Terminal("n\n"), "nothing was sent"),
        ):
            capsys.readouterr()
            monkeypatch.setattr(sys, "stdin", answer)
            monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
            assert main(command) == 2
            price, *_, said = capsys.readouterr().err.splitlines()
            assert "2 trajectories, 8 samples of 4 steps" in price
            assert said.endswith(refusal)
            assert len(asked) == trials
            assert not list(tmp_path.glob("guide.json*"))

        monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
        assert main(command) == 0, capsys.readouterr().err
        generating = asked[trials:]

    guide = json.loads((tmp_path / "guide.json").read_bytes())
    assert [rule["content"] for rule in guide["rules"]] == [RULE["content"]]
    assert guide["rules"][0]["source_tasks"] == TASKS.split(",")
    assert guide["provenance"]["calls"] == len(generating) == 4 + 2
    assert {authorization for authorization, _ in asked} == {f"Bearer {KEY}"}
    sampling = source.sampling
    for _, body in generating:
        assert body["model"] == MODEL
        assert body["top_p"] == sampling.top_p
        if "tools" in body:
            assert (body["temperature"], body["n"], body["max_tokens"], "seed" in body) == (
                0.5,
                2,
                3000,
                False,
            )
        else:
            assert (body["temperature"], body["seed"]) == (sampling.temperature, sampling.seed)
            assert body["max_tokens"] == sampling.max_tokens
    calls = [row for folder in executions_of(store)[1:] for row in folder.rows("call")]
    assert {(row["by"], row["ended"]) for row in calls} == {("path", "answered")}
    for path in (tmp_path / "mlruns").rglob("*"):
        assert not path.is_file() or KEY.encode() not in path.read_bytes(), path
