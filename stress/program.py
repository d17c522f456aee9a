"""Starts `python -m xspec` as a process of its own and keeps sight of everything that it starts."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psutil

CHECKOUT = Path(__file__).parents[1]
DEADLINE_S = 240.0
_INHERITED = ("PATH", "LANG", "TMPDIR", "XSPEC_CONF")


def environ(root: Path, **extra: str) -> dict[str, str]:
    """An environment that holds what a command needs and nothing of the user's."""
    kept = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    return {**kept, "HOME": str(root), "XSPEC_MLFLOW": "later", **extra}


class Program:
    """One command. `seen` holds every process that was ever found below it, by pid."""

    def __init__(
        self, root: Path, arguments: Sequence[str], *, program: Sequence[str] = ("-m", "xspec")
    ) -> None:
        self.seen: dict[int, psutil.Process] = {}
        self.err_path = root / "stderr.txt"
        with self.err_path.open("wb") as err:
            self.process = subprocess.Popen(
                [sys.executable, *program, *arguments],
                cwd=root,
                env=environ(root, PYTHONPATH=f"{CHECKOUT}{os.pathsep}{CHECKOUT / 'src'}"),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=err,
                start_new_session=True,
            )
        self.main = psutil.Process(self.process.pid)

    @property
    def err(self) -> str:
        return self.err_path.read_text(errors="replace")

    def look(self) -> list[psutil.Process]:
        """The processes below it that are alive now."""
        try:
            found = self.main.children(recursive=True)
        except psutil.NoSuchProcess:
            return []
        self.seen.update((process.pid, process) for process in found)
        return found

    def of_kind(self, kind: str) -> list[psutil.Process]:
        """`zygote`, `member`, `rehearsal`, or `joblib` (a launcher's job process), among those alive now."""
        return [process for process in self.look() if _kind(process) == kind]

    def until(self, predicate: Callable[[], Any]) -> bool:
        """Waits for something; False if the command ended before. Raises TimeoutError after the deadline."""
        end = time.monotonic() + DEADLINE_S
        while not predicate():
            self.look()
            if self.process.poll() is not None:
                return bool(predicate())
            if time.monotonic() > end:
                raise TimeoutError(f"not within {DEADLINE_S:g} s; it said: {self.err[-500:]}")
            time.sleep(0.005)
        return True

    def wait(self) -> int:
        """Its exit code, once it has ended."""
        end = time.monotonic() + DEADLINE_S
        while self.process.poll() is None:
            self.look()
            if time.monotonic() > end:
                raise TimeoutError(f"did not end within {DEADLINE_S:g} s; it said: {self.err[-500:]}")
            time.sleep(0.02)
        return int(self.process.returncode)

    def left(self, within_s: float = 30.0) -> list[str]:
        """The processes that are still there after a while, by command line; they are ended then."""
        _, alive = psutil.wait_procs(list(self.seen.values()), timeout=within_s)
        named = []
        for process in alive:
            try:
                if process.status() != psutil.STATUS_ZOMBIE:
                    named.append(" ".join(process.cmdline())[:120])
                    process.kill()
            except psutil.NoSuchProcess:
                pass
        return named

    def end(self) -> None:
        """Ends what is left of it, by pid."""
        for process in [*self.look(), self.main]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self.process.wait()


def _kind(process: psutil.Process) -> str | None:
    try:
        words = process.cmdline()
        above = process.parent()
        line = " ".join(words)
        if "xspec.rehearsal.server" in words:
            return "rehearsal"
        if "worker.py" in line:
            below = above is not None and "worker.py" in " ".join(above.cmdline())
            return "member" if below else "zygote"
        if "loky.backend.popen_loky_posix" in line:
            return "joblib"
    except psutil.Error:
        pass
    return None
