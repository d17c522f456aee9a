"""The verb: a command behind the gateway, its environment and end, kills, curl; and neither key in any output."""

import asyncio
import base64
import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from xspec.__main__ import main
from xspec.records.executions import executions_of

DEADLINE_S = 90
ASK = """
    import openai
    reply = openai.OpenAI().chat.completions.create(model="any", messages=[{"role": "user", "content": "hello"}])
    print("said:", reply.choices[0].message.content)
"""


@contextmanager
def upstream(kit: Any, answer: Any) -> Iterator[Any]:
    """An upstream in a thread of its own, for gateways that are processes of their own."""
    found: list[Any] = []
    ready, loop = threading.Event(), asyncio.new_event_loop()
    over = asyncio.Event()

    async def serve() -> None:
        server = kit.Upstream(answer)
        async with server.serving():
            found.append(server)
            ready.set()
            await over.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    ready.wait()
    try:
        yield found[0]
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()
        loop.close()


def start(
    kit: Any, port: int, command: list[str], *options: str, **variables: str
) -> "subprocess.Popen[str]":
    behind = ["--", *command] if command else []
    arguments = ("gateway", *kit.overrides(port), f"store={kit.store.path}", *options, *behind)
    process: subprocess.Popen[str] = kit.start(*arguments, **variables)
    return process


def finish(process: "subprocess.Popen[str]") -> tuple[int, str, str]:
    out, err = process.communicate(timeout=DEADLINE_S)
    return process.returncode, out, err


class Here:
    """`python -m xspec` in this process, which spares its imports; what commands say is caught too."""

    def __init__(self, kit: Any, capfd: pytest.CaptureFixture[str]) -> None:
        self._kit = kit
        self._capfd = capfd

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        self._capfd.readouterr()
        code = main(list(arguments))
        return code, *self._capfd.readouterr()

    def gateway(self, port: int, command: list[str], *options: str) -> tuple[int, str, str]:
        overrides = self._kit.overrides(port)
        return self("gateway", *overrides, f"store={self._kit.store.path}", *options, "--", *command)


@pytest.fixture
def here(kit: Any, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Here:
    monkeypatch.chdir(kit.cwd)
    monkeypatch.setenv("UPSTREAM_KEY", kit.KEY)
    return Here(kit, capfd)


def holding(root: Path, *secrets: str) -> list[Path]:
    forms = [
        form
        for s in secrets
        for form in (s.encode(), base64.b64encode(s.encode()), s.encode().hex().encode())
    ]
    files = [path for path in root.rglob("*") if path.is_file()]
    return [path for path in files if any(form in path.read_bytes() for form in forms)]


def test_a_command_is_served_and_neither_key_is_written_anywhere(kit: Any, here: Here) -> None:
    """The command even sends its token to the model, which sends it back along with the provider's key."""
    seen = kit.root / "seen.json"

    def answer(n: int, asked: Any) -> Any:
        said = f"{asked.json['messages'][0]['content']} and {asked.headers['authorization']}"
        if n % 2:
            return kit.Reply(pieces=kit.stream_of(said))
        return kit.Reply(kit.completion(said), x_request_id=asked.headers["authorization"])

    program = f"""
        import json, os, openai, pathlib
        above = pathlib.Path(f"/proc/{{os.getppid()}}/environ")
        assert not above.exists() or b"canary" not in above.read_bytes()
        token = os.environ["OPENAI_API_KEY"]
        client = openai.OpenAI()
        tools = [{{"type": "function", "function": {{"name": "f", "description": token}}}}]
        said = dict(model=token, messages=[{{"role": "user", "content": token}}], tools=tools)
        extra = {{"api_key": token, "reasoning_effort": token}}
        for stream in (False, True):
            got = client.chat.completions.create(**said, stream=stream, extra_body=extra)
            parts = [c.choices[0].delta.content or "" for c in got] if stream else [got.choices[0].message.content]
            reply = "".join(parts)
            assert token in reply and "canary" not in reply, reply
        json.dump(dict(os.environ), open({str(seen)!r}, "w"))
        raise SystemExit(7)
    """
    with upstream(kit, answer) as server, kit.program(program) as command:
        code, out, err = finish(start(kit, server.port, command, OTHER_TOKEN="another-secret-value"))
    assert code == 7, err
    environment = json.loads(seen.read_text())
    seen.unlink()
    token = environment["OPENAI_API_KEY"]
    assert kit.KEY not in environment.values()
    assert not {"UPSTREAM_KEY", "OTHER_TOKEN"} & environment.keys()
    assert environment["OPENAI_BASE_URL"].startswith("http://127.0.0.1:")
    assert holding(kit.root, token, kit.KEY) == []
    assert token not in out + err
    assert kit.KEY not in out + err
    (folder,) = executions_of(kit.store)
    assert [call["ended"] for call in folder.rows("call")] == ["answered", "answered"]
    _, shown, said = here("report", "--store", str(kit.store.path), "--format", "html")
    assert folder.path.name in shown
    assert token not in shown + said


def test_without_a_command_it_is_called_with_curl_until_interrupted(kit: Any) -> None:
    with upstream(kit, lambda n, asked: kit.Reply(kit.completion("hi"))) as server:
        process = start(kit, server.port, [])
        assert process.stdout is not None
        exports = [process.stdout.readline().removeprefix("export ").strip() for _ in range(2)]
        variables = dict(line.split("=", 1) for line in exports)
        body = json.dumps({"messages": [{"role": "user", "content": "hello"}], "seed": 1})
        curl = ["curl", "-sS", "--fail-with-body", "-H", "content-type: application/json", "-d", body]
        url = f"{variables['OPENAI_BASE_URL']}/chat/completions"
        done = subprocess.run(
            [*curl, "-H", f"Authorization: Bearer {variables['OPENAI_API_KEY']}", url],
            capture_output=True,
            check=True,
        )
        assert json.loads(done.stdout)["choices"][0]["message"]["content"] == "hi"
        wrong = subprocess.run([*curl, url], capture_output=True)
        assert wrong.returncode == 22
        assert b"token" in wrong.stdout
        process.send_signal(signal.SIGINT)
        code, _, err = finish(process)
    assert code == 0, err
    assert "1 call, 1 answered" in err
    (folder,) = executions_of(kit.store)
    assert [call["by"] for call in folder.rows("call")] == ["order"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_the_command_and_what_it_started(kit: Any, number: signal.Signals) -> None:
    program = """
        import os, subprocess, sys, openai
        sleep = [sys.executable, "-c", "import time; time.sleep(600)"]
        child, apart = subprocess.Popen(sleep), subprocess.Popen(sleep, start_new_session=True)
        print(os.getpid(), child.pid, apart.pid, flush=True)
        openai.OpenAI().chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}])
    """
    hangs = lambda n, asked: kit.Reply(pieces=[asyncio.Event().wait])  # noqa: E731
    with upstream(kit, hangs) as server, kit.program(program) as command:
        process = start(kit, server.port, command)
        assert process.stdout is not None
        pids = [int(pid) for pid in process.stdout.readline().split()]
        started = [psutil.Process(pid) for pid in pids]
        while not server.asked:
            assert process.poll() is None
            threading.Event().wait(0.02)
        process.send_signal(number)
        code, _, err = finish(process)
    assert code == 130, err
    gone, alive = psutil.wait_procs(started, timeout=10)
    assert alive == []
    assert len(gone) == 3
    (folder,) = executions_of(kit.store)
    (call,) = folder.rows("call")
    assert call["ended"] in ("gone", "stopped"), "whichever is noticed first"
    assert [row["error"] for row in folder.rows("attempt")] == ["cancelled"]


def test_a_killed_gateway_owns_up_to_what_it_sent(kit: Any, here: Here) -> None:
    hangs = lambda n, asked: kit.Reply(pieces=[asyncio.Event().wait])  # noqa: E731
    with upstream(kit, hangs) as server, kit.program(ASK) as command:
        process = start(kit, server.port, command)
        while not server.asked:
            assert process.poll() is None
            threading.Event().wait(0.02)
        process.kill()
        finish(process)
    (folder,) = executions_of(kit.store)
    assert len(list(folder.rows("attempt_started"))) == 1
    assert list(folder.rows("attempt", "call")) == []
    _, shown, _ = here("report", "--store", str(kit.store.path))
    assert "1 attempt never returned" in " ".join(shown.split())
    assert "it was not closed in order" in " ".join(shown.split())


def test_a_command_that_is_killed_and_an_upstream_that_dies(kit: Any, here: Here) -> None:
    killed = ["sh", "-c", "kill -9 $$"]
    with upstream(kit, lambda n, asked: kit.Reply()) as server:
        code, _, err = here.gateway(server.port, killed)
        assert code == 128 + 9, err
        port = server.port
    with kit.program(ASK) as command:
        code, _, err = here.gateway(port, command)
    assert code == 1, err
    assert "no usable reply after 3 attempts" in err
    newest = executions_of(kit.store)[-1]
    assert [row["error"] for row in newest.rows("attempt")] == ["connection"] * 3
    assert [call["ended"] for call in newest.rows("call")] == ["failed"]


def test_a_stopped_route_is_told_although_the_command_makes_light_of_it(kit: Any, here: Here) -> None:
    program = """
        import openai
        try:
            openai.OpenAI().chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}])
        except openai.BadRequestError:
            print("never mind")
    """
    answer = lambda n, asked: kit.Reply({"error": {"message": "bad key"}}, 401)  # noqa: E731
    with upstream(kit, answer) as server, kit.program(program) as command:
        code, out, err = here.gateway(server.port, command)
    assert (code, out) == (3, "never mind\n")
    assert "stopped: member main answered 401" in err
    assert "UPSTREAM_KEY" in err


def test_a_stored_spec_is_served_again_and_cannot_be_reproduced_or_run(kit: Any, here: Here) -> None:
    with upstream(kit, lambda n, asked: kit.Reply(kit.completion("hi"))) as server:
        with kit.program(ASK) as command:
            assert here.gateway(server.port, command)[0] == 0
            (folder,) = executions_of(kit.store)
            spec_id = folder.info.spec_id
            store = ("--store", str(kit.store.path))
            code, out, err = here("gateway", spec_id, *store, "--", *command)
            assert (code, out) == (0, "said: hi\n"), err
        assert [f.info.spec_id for f in executions_of(kit.store)] == [spec_id, spec_id]
        for words in (("reproduce", spec_id), ("replay", folder.path.name)):
            code, _, err = here(*words, *store)
            assert code == 2
            assert len(err.strip().splitlines()) == 1, err
        asked = len(server.asked)
        code, _, err = here("gateway", spec_id, *store, "--enforce", "refuse", "--", "true")
        assert code == 0, err
        assert len(server.asked) == asked
    assert len({f.info.spec_id for f in executions_of(kit.store)}) == 2


WRONG = {
    "no such program": (["--", "no-such-program"], "'no-such-program' is not found"),
    "nothing after --": (["--"], "there is none"),
    "an agent": (["agent=json_choice", "--", "true"], "no agent of xspec's plays"),
    "a guide": (["guide=checklist", "--", "true"], "leave out guide"),
    "a taken port": (["--port", "1", "--host", "203.0.113.1", "--", "true"], "cannot listen"),
    "a word": (["nonsense", "--", "true"], "nonsense"),
    "the key in the command": (
        ["--", "echo", "canary-4711-Provider-Key-of-some-Length"],
        "word 2 of the command",
    ),
}


@pytest.mark.parametrize(("arguments", "said"), WRONG.values(), ids=list(WRONG))
def test_wrong_input_is_one_line_and_leaves_nothing(
    kit: Any, here: Here, arguments: list[str], said: str
) -> None:
    store = kit.root / "new-store"
    overrides = kit.overrides(9) if arguments[0] != "nonsense" else []
    code, out, err = here("gateway", *overrides, f"store={store}", *arguments)
    assert (code, out) == (2, "")
    (line,) = err.strip().splitlines()
    assert said in line
    assert kit.KEY not in line
    assert not store.exists()
    assert os.listdir(kit.cwd) == []
