"""A pool of worker members that serve worlds, each replaced when it dies or hangs."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from xspec.benchmarks import BENCHMARKS, Launch, environments, frames
from xspec.benchmarks.zygote_process import MemberLink, ZygoteProcess
from xspec.errors import SpecError, WorkerDied, WorkerHung, ZygoteDied

DESCRIBE_TIMEOUT_S = 120.0
SOLUTIONS_TIMEOUT_S = 600.0
CLOSE_TIMEOUT_S = 10.0


class World:
    """One task's world in one member, until its context ends. WorkerDied and WorkerHung end it earlier."""

    def __init__(self, task: str, link: MemberLink, zygote: ZygoteProcess, folder: Path | None) -> None:
        self._task = task
        self._link = link
        self._zygote = zygote
        self._folder = folder

    async def act(self, action: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
        """What a tool call `{"name", "arguments"}` or a block `{"code"}` gave (protocol.Observation)."""
        try:
            observation = await self._ask({"verb": "act", "action": dict(action)}, timeout_s)
        except frames.FrameError as error:
            return {"content": f"the action cannot be carried out: {error}", "error": True}
        return dict(observation)

    async def judge(self, answer: str, timeout_s: float) -> dict[str, Any]:
        """`{"passed", "detail"}`: the benchmark's verdict on the world as it is and the last answer.

        What a world kept in its folder is judged by a fresh member: in that of the world a model's code has run.
        """
        message = {"verb": "judge", "answer": answer}
        if self._folder is None:
            return dict(await self._ask(message, timeout_s))
        message |= {"task": self._task, "folder": str(self._folder)}
        link = await self._zygote.fork()
        try:
            return dict(await _ask(self._zygote, link, message, timeout_s, f"of {self._task}"))
        finally:
            self._zygote.discard(link)

    async def _ask(self, message: frames.Message, timeout_s: float) -> Any:
        return await _ask(self._zygote, self._link, message, timeout_s, f"of {self._task}")


class WorkerPool:
    """Worlds of one benchmark, at most `members` at a time. Used as an async context manager.

    `kind` names the benchmark in BENCHMARKS; `launch` replaces that entry. What workers print goes to the
    file `log`. Entering raises WorkerError if the worker does not start, SpecError if the benchmark has no
    such version, split or setting.
    """

    def __init__(
        self,
        kind: str,
        version: str,
        split: str,
        settings: Mapping[str, Any] | None,
        *,
        members: int,
        log: Path | None,
        launch: Launch | None = None,
    ) -> None:
        if launch is None and kind not in BENCHMARKS:
            raise SpecError(f"there is no benchmark {kind!r}; known: {', '.join(sorted(BENCHMARKS))}")
        self._launch = launch or BENCHMARKS[kind]
        self._first = {"version": version, "split": split, "settings": dict(settings or {})}
        self._log = log
        self._free = asyncio.Semaphore(members)
        self._idle: list[MemberLink] = []
        self._open: set[MemberLink] = set()
        self._zygote: ZygoteProcess | None = None
        self._starting = asyncio.Lock()
        self._closed = False
        self._manifest: dict[str, Any] | None = None

    async def __aenter__(self) -> Self:
        await self._running_zygote()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Ends every process of the pool. Worlds still open raise WorkerDied."""
        self._closed = True
        for link in [*self._idle, *self._open]:
            link.close()
        self._idle.clear()
        async with self._starting:
            if self._zygote is not None:
                await self._zygote.aclose()

    @property
    def confinement(self) -> str | None:
        """What this system enforces on the worlds' processes; None if they run no code written by a model."""
        return self._zygote.confinement if self._zygote and self._launch.keeps_output else None

    def surroundings(self) -> dict[str, str]:
        """What a result may depend on beside the manifest: the environment's interpreter and pins, the confinement."""
        made = environments.record(self._launch.environment) if self._launch.environment else None
        found = {name: str(made[name]) for name in ("python", "requirements")} if made else {}
        return found | ({"confinement": self.confinement} if self.confinement else {})

    @property
    def keeps_output(self) -> bool:
        """Whether each world wants a folder of its own."""
        return self._launch.keeps_output

    async def describe(self) -> dict[str, Any]:
        """The task manifest (xspec.benchmarks.protocol.Manifest), asked for once and then kept."""
        if self._manifest is None:
            self._manifest = dict(await self._ask_once({"verb": "describe"}, DESCRIBE_TIMEOUT_S))
        return self._manifest

    async def solutions(self) -> dict[str, dict[str, Any]]:
        """Task id -> Solution, for all tasks that have a known one. Takes seconds."""
        tasks = [entry["id"] for entry in (await self.describe())["tasks"]]
        return dict(await self._ask_once({"verb": "solutions", "tasks": tasks}, SOLUTIONS_TIMEOUT_S))

    @asynccontextmanager
    async def world(
        self, task: str, run: int, *, open_timeout_s: float, folder: Path | None = None
    ) -> AsyncIterator[World]:
        """A fresh world, in the first member that is free. The wait for one has no limit, the opening has.

        What a benchmark keeps of its worlds goes to `folder`, which is empty, or to one that goes with the world.
        """
        with self._kept_in(folder) as kept:
            async with self._free:
                zygote, link = await self._opened(task, run, kept, open_timeout_s)
                self._open.add(link)
                try:
                    yield World(task, link, zygote, kept)
                finally:
                    self._open.discard(link)
                    await self._take_back(zygote, link, task)

    @contextmanager
    def _kept_in(self, folder: Path | None) -> Iterator[Path | None]:
        if not self._launch.keeps_output:
            yield None
        elif folder is not None:
            yield folder
        else:
            # A member that was killed may still end while its folder is removed.
            with tempfile.TemporaryDirectory(prefix="xspec-world-", ignore_cleanup_errors=True) as made:
                yield Path(made)

    async def _opened(
        self, task: str, run: int, folder: Path | None, timeout_s: float
    ) -> tuple[ZygoteProcess, MemberLink]:
        """A member that idled may have died unseen; then a fresh one gets the world."""
        message: dict[str, Any] = {"verb": "open", "task": task, "run": run}
        if folder is not None:
            message["folder"] = str(folder)
        while True:
            zygote = await self.warm()
            reused = self._idle_member(zygote)
            link = reused or await zygote.fork()
            try:
                await _ask(zygote, link, message, timeout_s, f"of {task}")
            except WorkerDied:
                if reused is None:
                    raise
            except BaseException:
                # A benchmark that raised in `open` may have left half a world behind.
                zygote.discard(link)
                raise
            else:
                link.worlds += 1
                return zygote, link

    def _idle_member(self, zygote: ZygoteProcess) -> MemberLink | None:
        while self._idle:
            link = self._idle.pop()
            if link.usable:
                return link
            zygote.discard(link)
        return None

    async def _take_back(self, zygote: ZygoteProcess, link: MemberLink, task: str) -> None:
        used_up = link.worlds == self._launch.worlds_per_member
        if link.usable and zygote is self._zygote and not self._closed and not used_up:
            try:
                await _ask(zygote, link, {"verb": "close"}, CLOSE_TIMEOUT_S, f"of {task}")
            except (WorkerDied, WorkerHung):
                return  # it is discarded already, and the trial has its verdict
            except BaseException:
                zygote.discard(link)
                raise
            self._idle.append(link)
        else:
            zygote.discard(link)

    async def _ask_once(self, message: frames.Message, timeout_s: float) -> Any:
        """Asks a member of its own, so that the zygote stays small and answers others meanwhile."""
        zygote = await self._running_zygote()
        link = await zygote.fork()
        self._open.add(link)
        try:
            return await _ask(zygote, link, message, timeout_s, "of the benchmark")
        finally:
            self._open.discard(link)
            zygote.discard(link)

    async def warm(self) -> ZygoteProcess:
        """Has all loaded that worlds need, else the first one waits for it. Raises as entering does."""
        zygote = await self._running_zygote()
        await zygote.warm()
        return zygote

    async def _running_zygote(self) -> ZygoteProcess:
        """The zygote, started if there is none or if it has died."""
        async with self._starting:
            if self._closed:
                raise WorkerDied("the pool of workers is closed")
            if self._zygote is None or not self._zygote.alive:
                for link in self._idle:
                    link.close()
                self._idle.clear()
                if self._zygote is not None:
                    await self._zygote.aclose()
                    self._zygote = None
                self._zygote = await ZygoteProcess.start(self._launch, self._first, self._log)
            return self._zygote


async def _ask(
    zygote: ZygoteProcess, link: MemberLink, message: frames.Message, timeout_s: float, whose: str
) -> Any:
    """Asks a member; one that hangs or dies is discarded and the error says so."""
    try:
        return await link.ask(message, timeout_s)
    except TimeoutError:
        zygote.discard(link)
        raise WorkerHung(
            f"the worker did not answer {message['verb']!r} {whose} within {timeout_s:g} s and was killed"
        ) from None
    except EOFError:
        died = f"the worker died during {message['verb']!r} {whose}"
        try:
            status = await zygote.how_it_ended(link)
        except ZygoteDied:
            raise ZygoteDied(f"{died}, with its zygote") from None
        raise WorkerDied(f"{died} ({status})") from None
