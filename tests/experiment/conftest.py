"""A laboratory for executions: the program in this process or its own, a chat server on loopback, a quick benchmark."""

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psutil
import pytest

from xspec.__main__ import main
from xspec.benchmarks import BENCHMARKS, Launch
from xspec.records.executions import ExecutionFolder, executions_of
from xspec.spec.store import Store

HERE = Path(__file__).parent
LAB = HERE / "lab_benchmark.py"
DEADLINE_S = 120.0
PASSED = ("PATH", "PYTHONPATH", "XSPEC_CONF", "TMPDIR", "XSPEC_MLFLOW")
KEY = "canary-4711-Plain-Words-and-some-Length"

LAB_OVERRIDES = ("benchmark.kind=lab", "benchmark.version='1'", "benchmark.exclude=[]")
QUIET = (
    *("unstable_tasks=0.5", "hopeless_tasks=0.1", "flip_alpha=1", "flip_beta=1"),
    *("detour=0.1", "guide_effect=0.5", "replan=0.5", "difficulty_seed=7"),
)
NO_FAULTS: dict[str, float] = {
    "too_many_requests": 0,
    "server_error": 0,
    "stall": 0,
    "reset": 0,
    "truncated_json": 0,
    "other_model": 0,
    "garbled_arguments": 0,
    "retry_after_s": 0.01,
    "stall_s": 0.1,
    "latency_s": 0,
}


@dataclass(frozen=True)
class Finished:
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str


@dataclass
class Laboratory:
    """Starts xspec, here or as a process of its own, with a home, a working directory and a store of its own."""

    root: Path
    store_path: Path
    started: list["Running"] = field(default_factory=list)

    def __post_init__(self) -> None:
        for name in ("home", "cwd"):
            (self.root / name).mkdir(parents=True, exist_ok=True)

    @property
    def store(self) -> Store:
        return Store(self.store_path)

    @property
    def cwd(self) -> Path:
        return self.root / "cwd"

    def environ(self, extra: Mapping[str, str]) -> dict[str, str]:
        """What a command sees: nothing of this process's own but where things are; MLflow is left for later."""
        kept = {n: os.environ[n] for n in PASSED if n in os.environ}
        return {**kept, "HOME": str(self.root / "home"), **extra}

    def here(self, *arguments: str, **variables: str) -> Finished:
        """Runs a command line in this process."""
        out, err = io.StringIO(), io.StringIO()
        before, environ = dict(os.environ), self.environ(variables)
        os.environ.clear()
        os.environ.update(environ)
        try:
            with (
                contextlib.chdir(self.cwd),
                contextlib.redirect_stdout(out),
                contextlib.redirect_stderr(err),
            ):
                code = main(self.complete(arguments))
        finally:
            os.environ.clear()
            os.environ.update(before)
        return Finished(code, out.getvalue(), err.getvalue())

    def complete(self, arguments: Sequence[str]) -> list[str]:
        """The arguments, with this laboratory's store."""
        if arguments and "=" not in arguments[0] and not arguments[0].startswith("-"):
            return [*arguments, "--store", str(self.store_path)]
        return [*arguments, f"store={self.store_path}"]

    def start(self, *arguments: str, **variables: str) -> "Running":
        """Runs a command line as a process of its own."""
        out, err = (self.root / f"{name}-{len(self.started)}.txt" for name in ("out", "err"))
        with out.open("wb") as out_file, err.open("wb") as err_file:
            process = subprocess.Popen(
                [sys.executable, str(HERE / "lab_xspec.py"), *self.complete(arguments)],
                cwd=self.cwd,
                env=self.environ(variables),
                stdin=subprocess.DEVNULL,
                stdout=out_file,
                stderr=err_file,
                start_new_session=True,
            )
        running = Running(process, out, err, self)
        self.started.append(running)
        return running

    def begin(self, spec_id: str) -> ExecutionFolder:
        """An execution that is begun but has done nothing: both of two copies of the store can go on with it."""
        return ExecutionFolder.create(self.store, spec_id, None, [])

    def spec_id(self, *arguments: str) -> str:
        """Compiles overrides and returns the id of their spec."""
        shown = self.here("show", *arguments)
        assert shown.code == 0, shown.err
        return shown.err.split()[0]

    def copy(self, name: str) -> "Laboratory":
        """The same store, copied."""
        root = self.root / name
        shutil.copytree(self.store_path, root / "store")
        return Laboratory(root, root / "store")

    def executions(self, spec_id: str | None = None) -> list[ExecutionFolder]:
        return executions_of(self.store, spec_id)

    def only(self) -> ExecutionFolder:
        """The only execution of the store."""
        (folder,) = self.executions()
        return folder

    def report(self, *arguments: str) -> dict[str, Any]:
        finished = self.here("report", "--format", "json", *arguments)
        assert finished.code == 0, finished.err
        return json.loads(finished.out)

    def end_all(self) -> None:
        """Ends what a failed test left running."""
        for running in self.started:
            for one in [*_descendants(running.main), running.main]:
                with contextlib.suppress(psutil.NoSuchProcess):
                    one.kill()
            running.process.wait(DEADLINE_S)


@dataclass
class Running:
    """A started command."""

    process: subprocess.Popen[bytes]
    out: Path
    err: Path
    lab: Laboratory
    seen: dict[int, psutil.Process] = field(default_factory=dict)
    main: psutil.Process = field(init=False)

    def __post_init__(self) -> None:
        self.main = psutil.Process(self.process.pid)

    def tree(self) -> list[psutil.Process]:
        """The processes it started, with theirs; each one seen is remembered for `assert_nothing_left`."""
        found = _descendants(self.main)
        self.seen.update((process.pid, process) for process in found)
        return found

    def zygote(self) -> psutil.Process | None:
        return next((p for p in self.main.children() if "worker.py" in " ".join(_cmdline(p))), None)

    def members(self) -> list[psutil.Process]:
        zygote = self.zygote()
        return zygote.children() if zygote else []

    def rehearsal(self) -> psutil.Process | None:
        return next((p for p in self.main.children() if "xspec.rehearsal.server" in _cmdline(p)), None)

    def wait(self, deadline_s: float = DEADLINE_S) -> Finished:
        """How it ended. Fails if it does not end in time."""
        code = self.process.wait(deadline_s)
        return Finished(code, self.out.read_text(), self.err.read_text())

    def until(self, predicate: Callable[[], Any], what: str) -> Any:
        """Waits until something is so; fails if the process ends first, or after the deadline."""

        def look() -> Any:
            found = predicate()
            if not found and self.process.poll() is not None:
                found = predicate()
                assert found, f"ended before {what}: {self.err.read_text()}"
            return found

        return wait_for(look, what)

    def assert_nothing_left(self, deadline_s: float = 20.0) -> None:
        wait_for(lambda: not [p for p in self.seen.values() if _alive(p)], "all processes ended", deadline_s)


def wait_for(predicate: Callable[[], Any], what: str, deadline_s: float = DEADLINE_S) -> Any:
    """Polls until the predicate holds; fails after the deadline."""
    end = time.monotonic() + deadline_s
    while not (found := predicate()):
        assert time.monotonic() < end, f"not within {deadline_s:g} s: {what}"
        time.sleep(0.005)
    return found


def _descendants(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _cmdline(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def _alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@dataclass
class ChatServer:
    """An OpenAI-compatible server on loopback. `answer` gives status and JSON body of the nth request (from 0)."""

    answer: Callable[[int, dict[str, Any]], tuple[int, Any]]
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    _server: ThreadingHTTPServer | None = None

    @property
    def overrides(self) -> tuple[str, ...]:
        """What points an experiment at this server."""
        assert self._server is not None
        return (
            *("provider=openai_compatible", "provider.model=small-2026-01-01"),
            *(f"provider.base_url=http://127.0.0.1:{self._server.server_address[1]}", "workers=2"),
            *("provider.api_key_env=LAB_KEY", "route.retry.backoff_s=0.001", "route.max_wait_s=0.1"),
        )

    @contextlib.contextmanager
    def serving(self) -> Iterator["ChatServer"]:
        outer, lock = self, threading.Lock()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                with lock:
                    number = len(outer.requests)
                    outer.requests.append(body)
                    outer.headers.append(dict(self.headers))
                    status, reply = outer.answer(number, body)
                data = json.dumps(reply).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: Any, client_address: Any) -> None:
                pass  # clients that give up are part of the tests

        self._server = Server(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            thread.join()
            self._server.server_close()


def completion(text: str | None = "done", *calls: tuple[str, Any], model: str = "small-2026-01-01") -> Any:
    """The body of a reply with text, or with tool calls (name, arguments)."""
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = [
            {"id": f"c{i}", "type": "function", "function": {"name": n, "arguments": json.dumps(a)}}
            for i, (n, a) in enumerate(calls)
        ]
    return {
        "id": "x",
        "object": "chat.completion",
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9},
    }


def faults(**rates: float) -> list[str]:
    """Overrides that give the simulated model exactly these faults, and its behaviour fixed values."""
    chosen = {**NO_FAULTS, **rates}
    return [
        *(f"provider.faults.{name}={value}" for name, value in chosen.items()),
        *(f"provider.behaviour.{item}" for item in QUIET),
        *("route.timeout_s=20", "route.retry.backoff_s=0.01", "route.max_wait_s=5"),
    ]


def outcomes(folder: ExecutionFolder) -> dict[tuple[int, str], tuple[str, str | None]]:
    """(run, task) → outcome and cause of the current trial."""
    return {place: (t.outcome, t.cause) for place, t in folder.progress().trials.items()}


def kinds(folder: ExecutionFolder) -> Counter[str]:
    """How many rows of each kind the journals hold."""
    return Counter(row["kind"] for row in folder.rows("attempt_started", "attempt", "step", "trial"))


@dataclass(frozen=True)
class Kit:
    """Everything above that tests call."""

    KEY = KEY
    LAB = LAB_OVERRIDES
    ChatServer = ChatServer
    Finished = Finished
    completion = staticmethod(completion)
    faults = staticmethod(faults)
    outcomes = staticmethod(outcomes)
    kinds = staticmethod(kinds)
    wait_for = staticmethod(wait_for)


@pytest.fixture(scope="session")
def kit() -> Kit:
    return Kit()


@pytest.fixture(scope="session", autouse=True)
def _lab_is_known() -> Iterator[None]:
    BENCHMARKS["lab"] = Launch(LAB)
    yield
    BENCHMARKS.pop("lab", None)


@pytest.fixture(scope="session")
def warm_store(made_once: Callable[..., Path]) -> Path:
    """A store that has asked both benchmarks what they hold, and has executed nothing."""

    def make(root: Path) -> None:
        lab = Laboratory(root, root / "store")
        for overrides in (LAB_OVERRIDES, ()):
            finished = lab.here("k=1", "benchmark.limit=1", *overrides, *faults())
            assert finished.code == 0, finished.err
        for name in ("executions", "specs"):
            shutil.rmtree(root / "store" / name)
            (root / "store" / name).mkdir()

    return made_once("warm", make) / "store"


@pytest.fixture
def make_lab(
    warm_store: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[], Laboratory]]:
    labs: list[Laboratory] = []

    def make() -> Laboratory:
        root = tmp_path_factory.mktemp("lab")
        shutil.copytree(warm_store, root / "store")
        labs.append(Laboratory(root, root / "store"))
        return labs[-1]

    yield make
    for lab in labs:
        lab.end_all()


@pytest.fixture
def lab(make_lab: Callable[[], Laboratory]) -> Laboratory:
    """A laboratory with a store of its own."""
    return make_lab()
