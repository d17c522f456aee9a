"""The zygote: loads a benchmark once, then forks a member for every request. Standard library only.

It answers on the control socket, one frame a request:

    {"version", "split", "settings"}     first of all: load the benchmark  ->  {"ready": pid, "confinement": "…"}
    {"warm": n}                          load what worlds need             ->  {"warmed": n} or with a failure
    {"fork": n} with a socket attached   fork member n on that socket      ->  {"forked": n}
    {"kill": n}                          end member n, if it still lives   ->  {"ended": n, "status": "…"}

A member that ended stays unreaped until it is asked for, so a pid is never that of a stranger. When the
control socket closes, the parent is gone: the zygote kills its members and ends.
"""

import gc
import importlib.util
import os
import select
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

from xspec.benchmarks import frames, member
from xspec.benchmarks.confinement import enforced
from xspec.benchmarks.protocol import BadInput, Benchmark, WarmedBenchmark

OBSERVATION_CHARS = 50_000
"""Default of the setting `observation_chars`: longer observations are trimmed to this many characters."""

_WATCH_S = 0.5


def serve(control: socket.socket, module: Path) -> None:
    """Loads the benchmark and serves the control socket until it closes."""
    with _loading(control):
        request = frames.read_frame(control)
        if request is None:
            return
        try:
            settings = dict(request["settings"])
            limit = _observation_chars(settings)
            benchmark = _load(module, request["version"], request["split"], settings)
            _require_one_thread()
        except Exception as error:
            traceback.print_exc()
            frames.write_frame(control, member.failure(error))
            return
    frames.write_frame(control, {"ready": os.getpid(), "confinement": enforced()})
    _serve_requests(control, benchmark, limit)


@contextmanager
def _loading(control: socket.socket) -> Iterator[None]:
    """While this process loads what it will keep, the collector would look through all of it many times in vain.

    Afterwards what is loaded stays shared with the members: the collector must not write into those pages.
    """
    _end_with_parent(control, watch=True)
    gc.disable()
    yield
    gc.collect()
    gc.freeze()
    gc.enable()
    _end_with_parent(control, watch=False)


def _warm(control: socket.socket, benchmark: Benchmark) -> frames.Message:
    """Has the benchmark load what its worlds need. The failure if it could not."""
    if isinstance(benchmark, WarmedBenchmark):
        with _loading(control):
            try:
                benchmark.warm()
                _require_one_thread()
            except Exception as error:
                traceback.print_exc()
                return member.failure(error)
    return {}


def _serve_requests(control: socket.socket, benchmark: Benchmark, limit: int) -> None:
    pids: dict[int, int] = {}
    try:
        while (received := _read_request(control)) is not None:
            request, fds = received
            if "fork" in request:
                number = request["fork"]
                pids[number] = _fork(control, fds[0], benchmark, limit)
                frames.write_frame(control, {"forked": number})
            elif "warm" in request:
                frames.write_frame(control, {"warmed": request["warm"], **_warm(control, benchmark)})
            else:
                number = request["kill"]
                frames.write_frame(control, {"ended": number, "status": _end(pids.pop(number))})
    except (ConnectionError, frames.FrameError):
        pass  # the parent went away in the middle of an exchange
    finally:
        for pid in pids.values():
            _end(pid)


def _read_request(control: socket.socket) -> tuple[frames.Message, list[int]] | None:
    """A frame and the descriptors that came with its first byte; None once the parent has closed."""
    begun, fds, _, _ = socket.recv_fds(control, frames.HEADER.size, 1)
    if not begun:
        return None
    header = frames.read_exactly(control, frames.HEADER.size, begun)
    assert header is not None
    return frames.read_payload(control, header), fds


def _fork(control: socket.socket, fd: int, benchmark: Benchmark, limit: int) -> int:
    sys.stdout.flush()
    sys.stderr.flush()
    zygote = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            control.close()
            member.serve(socket.socket(fileno=fd), benchmark, limit, zygote)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    os.close(fd)
    _lead_own_group(pid)
    return pid


def _lead_own_group(pid: int) -> None:
    """Done on both sides of the fork, so that whoever is first, the group exists before anyone kills it."""
    with suppress(OSError):  # it did so itself, or has ended already
        os.setpgid(pid, pid)


def _end(pid: int) -> str:
    """Kills a member with all it started and says how it ended. A dead one keeps its own status."""
    with suppress(ProcessLookupError, PermissionError):  # nobody of its group is left alive
        os.killpg(pid, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return f"exit code {code}" if code >= 0 else signal.Signals(-code).name


def _end_with_parent(control: socket.socket, *, watch: bool) -> None:
    """While it loads, nobody reads the control socket: a timer looks whether the parent still lives."""

    def look(signum: int, frame: FrameType | None) -> None:
        poll = select.poll()
        poll.register(control, 0)
        if poll.poll(0):
            os._exit(1)

    if watch:
        signal.signal(signal.SIGALRM, look)
        signal.setitimer(signal.ITIMER_REAL, _WATCH_S, _WATCH_S)
    else:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)


def _observation_chars(settings: dict[str, Any]) -> int:
    limit = settings.pop("observation_chars", OBSERVATION_CHARS)
    if type(limit) is not int or limit < 1:
        raise BadInput(
            f"the setting observation_chars is {limit!r}; it is a whole number of characters, at least 1"
        )
    return limit


def _load(module: Path, version: str, split: str, settings: dict[str, Any]) -> Benchmark:
    """Runs the benchmark file and calls its `make`. Its folder is not on the path: `agentdojo.py` must not
    shadow the package it imports.
    """
    spec = importlib.util.spec_from_file_location(f"xspec_benchmark_{module.stem}", module)
    if spec is None or spec.loader is None:
        raise BadInput(f"{module} is not a Python file")
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = loaded
    spec.loader.exec_module(loaded)
    make: Callable[[str, str, dict[str, Any]], Benchmark] = loaded.make
    return make(version, split, settings)


def _require_one_thread() -> None:
    """A fork copies one thread; the locks that others hold would stay locked for ever in the members."""
    count = threading.active_count()
    if sys.platform == "linux":
        count = max(count, len(os.listdir("/proc/self/task")))
    if count > 1:
        raise RuntimeError(f"the benchmark runs {count} threads after loading; members are forked from one")
