"""A member: a forked process that serves one world at a time on its own socket. Standard library only."""

import ctypes
import os
import random
import select
import signal
import socket
import sys
import threading
import traceback
from typing import Any

from xspec.benchmarks import frames
from xspec.benchmarks.protocol import BadInput, Benchmark, Observation

_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
_PR_SET_PDEATHSIG = 1


def serve(sock: socket.socket, benchmark: Benchmark, limit: int, zygote: int) -> None:
    """Answers requests until the socket closes. Observations are trimmed to `limit` characters."""
    os.setpgid(0, 0)
    _die_with(zygote)
    threading.Thread(target=_die_with_socket, args=(sock,), daemon=True).start()
    while True:
        try:
            request = frames.read_frame(sock)
        except frames.PayloadError as error:
            frames.write_frame(sock, failure(error))
            continue
        if request is None:
            return
        sock.sendall(_encoded(_answer(request, benchmark, limit)))


def failure(error: BaseException) -> frames.Message:
    """The answer that says what went wrong, in one line."""
    text = str(error) if isinstance(error, BadInput) else f"{type(error).__name__}: {error}"
    return {"error": " ".join(text.split()), "input": isinstance(error, BadInput)}


def _answer(request: frames.Message, benchmark: Benchmark, limit: int) -> frames.Message:
    try:
        return {"ok": _carry_out(request, benchmark, limit)}
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit too: a benchmark that exits has failed, the member has not
        traceback.print_exc()
        return failure(error)


def _carry_out(request: frames.Message, benchmark: Benchmark, limit: int) -> Any:
    verb = request["verb"]
    if verb == "act":
        return trimmed(_act(request["action"], benchmark), limit)
    if verb == "judge":
        return benchmark.judge(request["answer"])
    if verb == "open":
        # Members share the zygote's random state; what a world draws must depend on its place, not on its
        # member.
        random.seed(f"{request['task']}/{request['run']}")
        return benchmark.open(request["task"], request["run"])
    if verb == "close":
        return benchmark.close()
    if verb == "describe":
        return benchmark.describe()
    if verb == "solutions":
        tasks = [entry["id"] for entry in benchmark.describe()["tasks"]]
        return {task: found for task in tasks if (found := benchmark.solution(task)) is not None}
    raise ValueError(f"unknown verb {verb!r}")


def _act(action: dict[str, Any], benchmark: Benchmark) -> Observation:
    """What an action does, good or bad, is for the agent to see: nothing it raises ends the trial."""
    try:
        return benchmark.act(action)
    except (Exception, SystemExit) as error:
        return {"content": f"{type(error).__name__}: {error}", "error": True}


def trimmed(observation: Observation, limit: int) -> Observation:
    """The observation with at most `limit` characters of content, and a mark where some were left out."""
    content = observation["content"]
    if len(content) <= limit:
        return observation
    mark = f"\n[observation trimmed: the first {limit} of {len(content)} characters are shown]"
    return {"content": content[:limit] + mark, "error": observation["error"]}


def _encoded(answer: frames.Message) -> bytes:
    try:
        return frames.encode(answer)
    except frames.FrameError as error:
        return frames.encode(failure(error))


def _die_with_socket(sock: socket.socket) -> None:
    """Waits until the other side closes, then ends the process and all it started, busy or not."""
    poll = select.poll()
    poll.register(sock, 0)  # no event asked for: only a hang-up or an error wakes it
    poll.poll()
    os.killpg(0, signal.SIGKILL)


def _die_with(zygote: int) -> None:
    """On Linux the kernel ends a member whose zygote is gone, even one that lets no Python thread run."""
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != zygote:
        os._exit(1)
