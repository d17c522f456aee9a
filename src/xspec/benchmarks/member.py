"""A member: a forked process that serves one world at a time on its own socket. Standard library only.

One that is to run code written by a model confines itself before anything else, so that all its threads are.
"""

import ctypes
import os
import random
import select
import signal
import socket
import sys
import threading
import traceback
from typing import Any, cast

from xspec.benchmarks import frames
from xspec.benchmarks.confinement import confine
from xspec.benchmarks.protocol import BadInput, Benchmark, CodeBenchmark, Observation, WorldBroke

_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
_PR_SET_PDEATHSIG = 1


def serve(sock: socket.socket, benchmark: Benchmark, limit: int, zygote: int) -> None:
    """Answers requests until the socket closes. Observations are trimmed to `limit` characters."""
    os.setpgid(0, 0)
    _die_with(zygote)
    served = False
    while True:
        try:
            request = frames.read_frame(sock)
        except frames.PayloadError as error:
            frames.write_frame(sock, failure(error))
            continue
        if request is None:
            return
        if not served:
            refused = _confined(request, benchmark)
            threading.Thread(target=_die_with_socket, args=(sock,), daemon=True).start()
            served = True
            if refused is not None:
                sock.sendall(_encoded(refused))
                continue
        sock.sendall(_encoded(_answer(request, benchmark, limit)))


def failure(error: BaseException) -> frames.Message:
    """The answer that says what went wrong, in one line."""
    text = str(error) if isinstance(error, BadInput | WorldBroke) else f"{type(error).__name__}: {error}"
    return {"error": " ".join(text.split()), "input": isinstance(error, BadInput)}


def _confined(request: frames.Message, benchmark: Benchmark) -> frames.Message | None:
    """Confines a member whose first request has a trial's folder. The answer if that failed: then it serves nothing."""
    if request.get("folder") is None:
        return None
    coding, judging = cast(CodeBenchmark, benchmark), request["verb"] == "judge"
    try:
        confine(coding.needs(request["task"], request["folder"], judging=judging))
    except Exception as error:
        traceback.print_exc()
        return failure(error)
    return None


def _answer(request: frames.Message, benchmark: Benchmark, limit: int) -> frames.Message:
    try:
        return {"ok": _carry_out(request, benchmark, limit)}
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit too: a benchmark that exits has failed, the member has not
        traceback.print_exc()
        return failure(error)


def _carry_out(request: frames.Message, benchmark: Benchmark, limit: int) -> Any:
    verb, folder = request["verb"], request.get("folder")
    if verb == "act":
        return trimmed(_act(request["action"], benchmark), limit)
    if verb == "judge":
        if folder is not None:
            return cast(CodeBenchmark, benchmark).judge(request["task"], folder, request["answer"])
        return benchmark.judge(request["answer"])
    if verb == "open":
        # Members share the zygote's random state; what a world draws must depend on its place, not on its
        # member.
        random.seed(f"{request['task']}/{request['run']}")
        if folder is not None:
            return cast(CodeBenchmark, benchmark).open(request["task"], request["run"], folder)
        return benchmark.open(request["task"], request["run"])
    if verb == "close":
        return benchmark.close()
    if verb == "describe":
        return benchmark.describe()
    if verb == "solutions":
        found = {task: benchmark.solution(task) for task in request["tasks"]}
        return {task: solution for task, solution in found.items() if solution is not None}
    raise ValueError(f"unknown verb {verb!r}")


def _act(action: dict[str, Any], benchmark: Benchmark) -> Observation:
    """What an action does, good or bad, is for the agent to see: what it raises does not end the trial."""
    try:
        return benchmark.act(action)
    except WorldBroke:
        raise
    except (Exception, SystemExit) as error:
        return {"content": f"{type(error).__name__}: {error}", "error": True}


def trimmed(observation: Observation, limit: int) -> Observation:
    """The observation with at most `limit` characters of content, and a mark where some were left out."""
    content = observation["content"]
    if len(content) <= limit:
        return observation
    mark = f"\n[observation trimmed: the first {limit} of {len(content)} characters are shown]"
    return {**observation, "content": content[:limit] + mark}


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
