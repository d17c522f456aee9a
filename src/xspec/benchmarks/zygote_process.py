"""xspec's side of a zygote: start it, have members forked and ended, let it go."""

import asyncio
import os
import socket
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from xspec.benchmarks import Launch, frames
from xspec.errors import SpecError, WorkerError, WorkerHung, ZygoteDied

START_TIMEOUT_S = 180.0
FORK_TIMEOUT_S = 60.0
END_TIMEOUT_S = 5.0
_REPLIES = ("warmed", "forked", "ended")
_TAIL_BYTES = 65_536

_WORKER = Path(__file__).resolve().with_name("worker.py")


class MemberLink:
    """The socket to one member. Between a request and its answer it is out of step: only to be killed."""

    def __init__(self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.number = number
        self.worlds = 0
        self.in_step = True
        self._reader = reader
        self._writer = writer

    @property
    def usable(self) -> bool:
        return self.in_step and not self._reader.at_eof()

    async def ask(self, message: frames.Message, timeout_s: float) -> Any:
        """The `ok` of the answer. TimeoutError after `timeout_s`; EOFError if the member ended; WorkerError
        or SpecError if the benchmark raised.
        """
        frame = frames.encode(message)
        if not self.usable:
            raise EOFError
        self.in_step = False
        try:
            async with asyncio.timeout(timeout_s):
                self._writer.write(frame)
                answer = await frames.receive(self._reader)
        except (ConnectionError, frames.FrameError) as error:
            raise EOFError(str(error)) from error
        if answer is None:
            raise EOFError
        self.in_step = True
        if "ok" in answer:
            return answer["ok"]
        raise (SpecError if answer["input"] else WorkerError)(answer["error"])

    def close(self) -> None:
        self.in_step = False
        self._writer.transport.abort()


class ZygoteProcess:
    """A running zygote. Made by `start`, let go by `aclose`."""

    def __init__(
        self, process: subprocess.Popen[bytes], control: socket.socket, log: IO[bytes], log_start: int
    ) -> None:
        self._process = process
        self._control = control
        self._log = log
        self._log_start = log_start
        self.confinement: str | None = None
        self._last_number = 0
        self._members: set[int] = set()
        self._replies: dict[tuple[str, int], asyncio.Future[frames.Message]] = {}
        self._writer: asyncio.StreamWriter | None = None
        self._dispatcher: asyncio.Task[None] | None = None
        self._warming: asyncio.Task[None] | None = None
        self._refused = False  # it has closed its socket, which the dispatcher may not have seen yet

    @classmethod
    async def start(cls, launch: Launch, settings: Mapping[str, Any], log: Path | None) -> "ZygoteProcess":
        """`settings` is the first frame: version, split, settings. Raises WorkerError with the last useful
        line of stderr, SpecError if the benchmark says that the input is wrong, EnvironmentMissing.
        """
        python = launch.python()
        try:
            stderr = log.open("a+b") if log is not None else tempfile.TemporaryFile()  # noqa: SIM115
        except OSError as error:
            raise WorkerError(f"cannot write the log {error.filename}: {error.strerror}") from None
        log_start = os.fstat(stderr.fileno()).st_size
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                process = subprocess.Popen(  # noqa: ASYNC220  (the caller has nothing to do until it runs)
                    [python, "-P", str(_WORKER), str(theirs.fileno()), str(launch.module)],
                    stdin=subprocess.DEVNULL,
                    stdout=stderr,
                    stderr=stderr,
                    pass_fds=[theirs.fileno()],
                    env=launch.process_variables(os.environ),
                    start_new_session=True,  # Ctrl-C is for xspec, which then ends its workers in order
                )
            except OSError as error:
                ours.close()
                stderr.close()
                raise WorkerError(f"cannot start {python}: {error.strerror}") from None
        zygote = cls(process, ours, stderr, log_start)
        try:
            await zygote._await_ready(settings)
        except BaseException:
            await zygote.aclose()
            raise
        return zygote

    async def _await_ready(self, settings: Mapping[str, Any]) -> None:
        reader, self._writer = await asyncio.open_unix_connection(sock=self._control)
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                await frames.send(self._writer, dict(settings))
                answer = await frames.receive(reader)
        except TimeoutError:
            raise self._hung() from None
        except (ConnectionError, frames.FrameError):
            answer = None
        if answer is None:
            raise WorkerError(f"the worker ended while it loaded the benchmark{self._said()}")
        if "error" in answer:
            raise _not_loaded(answer)
        self.confinement = answer["confinement"]
        self._dispatcher = asyncio.create_task(self._dispatch(reader))

    @property
    def alive(self) -> bool:
        return self._dispatcher is not None and not self._dispatcher.done() and not self._refused

    async def warm(self) -> None:
        """Has the benchmark load what its worlds need, which takes time once. Raises as `start` does; ZygoteDied.

        If it cannot, the zygote ends: as after a start that failed, whoever wants a world next has another one started.
        """
        if self._warming is None:
            self._warming = asyncio.create_task(self._warm())
            self._warming.add_done_callback(_retrieved)
        await asyncio.shield(self._warming)

    async def _warm(self) -> None:
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                answer = await self._request("warm", 0, "warmed")
        except TimeoutError:
            await self._end()
            raise self._hung() from None
        if "error" in answer:
            await self._end()
            raise _not_loaded(answer)

    async def _end(self) -> None:
        assert self._dispatcher is not None
        self._process.kill()
        await asyncio.wait([self._dispatcher])

    def _hung(self) -> WorkerHung:
        return WorkerHung(f"the benchmark did not load within {START_TIMEOUT_S:g} s{self._said()}")

    async def fork(self) -> MemberLink:
        """A fresh member. Raises ZygoteDied if the zygote is gone."""
        self._last_number += 1
        number = self._last_number
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                forked = self._request("fork", number, "forked", [theirs.fileno()])
            self._members.add(number)
            link = MemberLink(number, *await asyncio.open_unix_connection(sock=ours))
        except BaseException:
            ours.close()
            self._kill(number)
            raise
        try:
            async with asyncio.timeout(FORK_TIMEOUT_S):
                await forked
        except TimeoutError:
            self.discard(link)
            raise WorkerHung(f"the zygote did not fork within {FORK_TIMEOUT_S:g} s") from None
        except BaseException:
            self.discard(link)
            raise
        return link

    def discard(self, link: MemberLink) -> None:
        """Has a member killed, without waiting for it. Once is enough, twice does no harm."""
        link.close()
        self._kill(link.number)

    async def how_it_ended(self, link: MemberLink) -> str:
        """Discards a member that broke off and says how it ended, for the message to the user.

        Raises ZygoteDied if the zygote is gone: a living one always answers, for it reaps its members itself.
        """
        link.close()
        if link.number not in self._members:
            return "it was gone already"
        self._members.remove(link.number)
        try:
            async with asyncio.timeout(END_TIMEOUT_S):
                return str((await self._request("kill", link.number, "ended"))["status"])
        except TimeoutError:
            return "how is not known"

    async def aclose(self) -> None:
        """Ends the zygote, and with it every member. Returns when no process is left."""
        if self._dispatcher is not None:
            self._dispatcher.cancel()
        if self._writer is None:
            self._control.close()
        else:
            self._writer.transport.abort()
        try:
            # Lets the transport close its descriptor: that is what the zygote waits for.
            await asyncio.sleep(0)
            await asyncio.to_thread(self._process.wait, END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            pass
        finally:
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait()
            self._log.close()

    def _kill(self, number: int) -> None:
        if number in self._members:
            self._members.remove(number)
            with suppress(ZygoteDied):
                self._request("kill", number, "ended")

    def _request(
        self, verb: str, number: int, reply: str, fds: list[int] | None = None
    ) -> asyncio.Future[Any]:
        """Sends at once and without waiting: a request is far smaller than a socket's buffer, and descriptors
        can't go through a stream. The future gets the answer.
        """
        if not self.alive:
            raise ZygoteDied(f"the zygote ended{self._said()}")
        try:
            socket.send_fds(self._control, [frames.encode({verb: number})], fds or [])
        except OSError as error:
            self._refused = True
            raise ZygoteDied(f"the zygote takes no more requests: {error.strerror}{self._said()}") from None
        future: asyncio.Future[frames.Message] = asyncio.get_running_loop().create_future()
        future.add_done_callback(_retrieved)
        self._replies[reply, number] = future
        return future

    async def _dispatch(self, reader: asyncio.StreamReader) -> None:
        """Gives each answer to whoever waits for it; when the zygote ends, tells them all."""
        try:
            while (answer := await frames.receive(reader)) is not None:
                kind = next(kind for kind in _REPLIES if kind in answer)
                future = self._replies.pop((kind, answer[kind]))
                if not future.done():
                    future.set_result(answer)
        except (ConnectionError, frames.FrameError):
            pass
        finally:
            for future in self._replies.values():
                if not future.done():
                    future.set_exception(ZygoteDied(f"the zygote ended{self._said()}"))

    def _said(self) -> str:
        """`: ` and the last line of stderr that says something, or nothing."""
        if self._log.closed:
            return ""
        fd = self._log.fileno()
        end = os.fstat(fd).st_size
        start = max(self._log_start, end - _TAIL_BYTES)
        # Not by seeking: the worker writes through the same open file.
        text = os.pread(fd, end - start, start).decode(errors="replace")
        lines = [line for line in text.splitlines() if line.strip()]
        telling = [line for line in lines if not line.startswith((" ", "\t"))] or lines
        return f": {telling[-1].strip()}" if telling else ""


def _not_loaded(answer: frames.Message) -> SpecError | WorkerError:
    if answer["input"]:
        return SpecError(answer["error"])
    return WorkerError(f"the benchmark could not be loaded: {answer['error']}")


def _retrieved(future: "asyncio.Future[Any]") -> None:
    """Marks an exception as seen: who discards a member need not care how that went."""
    if not future.cancelled():
        future.exception()
