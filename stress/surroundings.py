"""Disks and clocks that fail: each condition ends in a plain message, and the same command then goes on."""

import contextlib
import itertools
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from stress.line import Line, equal
from stress.program import Program
from xspec.records.executions import ExecutionFolder, executions_of
from xspec.spec.store import Store

PART = "surroundings"
K, TASKS = 4, 24
COMMAND = ["benchmark=choices", "workers=4", f"k={K}", "max_invalid_share=1"]
DISK = 4_000_000
"""Bytes of a small disk."""
ROOM = 100_000
"""Bytes that are left on it: enough for the beginning of an execution and not for its end."""


def run(root: Path) -> list[Line]:
    """Every condition, one after another, on stores of their own."""
    warm = root / "warm"
    _warm(root, warm)
    lines = [*_clock_jumps(root, warm), *_file_limit(root, warm)]
    if not _can_mount(root):
        return [*lines, Line(PART, "small and read-only disks", "root, to mount them", "left out", True)]
    return [*lines, *_full_from_the_start(root), *_full_in_the_middle(root, warm), *_read_only(root, warm)]


def _warm(root: Path, store: Path) -> None:
    """A store that knows the benchmark, with nothing executed."""
    code, err = _xspec(root, store, program=("-m", "xspec", "show"))
    if code:
        raise RuntimeError(f"the benchmark could not be compiled: {err}")


def _xspec(root: Path, store: Path, *, program: tuple[str, ...] = ("-m", "xspec")) -> tuple[int, str]:
    started = Program(root, [*COMMAND, f"store={store}"], program=program)
    try:
        code = started.wait()
    finally:
        started.end()
    left = started.left()
    return code, started.err + "".join(f"LEFT BEHIND: {process}" for process in left)


def _told(what: str, code: int, err: str, *, codes: tuple[int, ...], says: str) -> Line:
    last = next((line for line in reversed(err.splitlines()) if says in line), (err.splitlines() or [""])[-1])
    ok = code in codes and says in err and "Traceback" not in err and "LEFT BEHIND" not in err
    return Line(
        PART, what, f"exit {' or '.join(map(str, codes))}, “{says}”", f"exit {code}: {last[-150:]}", ok
    )


def _folder(store: Path) -> ExecutionFolder:
    (folder,) = executions_of(Store(store))
    return folder


def _goes_on(root: Path, store: Path, what: str, kept: set[tuple[int, str, int]]) -> list[Line]:
    """The same command once more, now that all is well: it finishes, and nothing finished is lost or done twice."""
    code, err = _xspec(root, store)
    rows = [(row["run"], row["task"], row["take"]) for row in _folder(store).rows("trial")]
    return [
        _told(f"{what}: then the same command", code, err, codes=(0,), says=""),
        equal(PART, f"{what}: trials in the end", K * TASKS, len(_folder(store).progress().trials)),
        equal(
            PART,
            f"{what}: finished trials lost or twice",
            0,
            len(kept - set(rows)) + len(rows) - len(set(rows)),
        ),
    ]


def _kept(store: Path) -> set[tuple[int, str, int]]:
    return {
        (row["run"], row["task"], row["take"])
        for folder in executions_of(Store(store))
        for row in folder.rows("trial")
    }


def _clock_jumps(root: Path, warm: Path) -> list[Line]:
    store = root / "clock"
    shutil.copytree(warm, store)
    code, err = _xspec(root, store, program=("-m", "stress.jumping_clock"))
    rows = list(_folder(store).rows("attempt"))
    backwards = sum(a["at"] > b["at"] + 3600 for a, b in itertools.pairwise(rows))
    negative = sum(row["latency_s"] < 0 or row["waited_s"] < 0 for row in rows)
    longest = max((row["latency_s"] + row["waited_s"] for row in rows), default=0.0)
    trials = _folder(store).progress().trials
    return [
        _told("wall clock jumps by up to two days", code, err, codes=(0,), says=""),
        equal(PART, "wall clock jumps: trials", K * TASKS, len(trials)),
        Line(PART, "wall clock jumps: rows whose time went back", "some", str(backwards), backwards > 0),
        Line(
            PART,
            "wall clock jumps: latencies and waits",
            "0 to 600 s",
            f"up to {longest:.1f} s",
            longest < 600 and not negative,
        ),
    ]


def _file_limit(root: Path, warm: Path) -> list[Line]:
    """A limit on the size of a file stands in for a full disk where nothing can be mounted."""
    store = root / "limited"
    shutil.copytree(warm, store)
    code, err = _xspec(root, store, program=("-m", "stress.file_limit", "100000"))
    line = _told(
        "files end at 100 kB, in the middle", code, err, codes=(3,), says="once that is mended, go on with"
    )
    return [line, *_goes_on(root, store, "files end at 100 kB", _kept(store))]


def _full_from_the_start(root: Path) -> list[Line]:
    with _disk(root / "full", DISK) as disk:
        _fill(disk)
        code, err = _xspec(root, disk / "store")
    return [_told("disk full from the start", code, err, codes=(2, 3), says="No space left on device")]


def _full_in_the_middle(root: Path, warm: Path) -> list[Line]:
    with _disk(root / "small", DISK) as disk:
        store = disk / "store"
        shutil.copytree(warm, store)
        _fill(disk, leave=ROOM)
        code, err = _xspec(root, store)
        line = _told("disk full in the middle", code, err, codes=(3,), says="stopped: cannot write")
        kept = _kept(store)
        some = Line(
            PART,
            "disk full in the middle: trials by then",
            "some, not all",
            str(len(kept)),
            0 < len(kept) < K * TASKS,
        )
        (disk / "filler").unlink()
        return [line, some, *_goes_on(root, store, "disk full in the middle", kept)]


def _read_only(root: Path, warm: Path) -> list[Line]:
    with _disk(root / "read-only", DISK) as disk:
        shutil.copytree(warm, disk / "store")
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        code, err = _xspec(root, disk / "store")
        fresh, fresh_err = _xspec(root, disk / "new")
    return [
        _told("store on a read-only disk", code, err, codes=(2,), says="not writable"),
        _told("new store on a read-only disk", fresh, fresh_err, codes=(2,), says="cannot be written"),
    ]


def _can_mount(root: Path) -> bool:
    try:
        with _disk(root / "probe", DISK):
            return True
    except (OSError, subprocess.CalledProcessError):
        return False


@contextlib.contextmanager
def _disk(path: Path, size: int) -> Iterator[Path]:
    """A small disk of its own, in memory."""
    path.mkdir()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "xspec-stress", str(path)],
        check=True,
        capture_output=True,
    )
    try:
        yield path
    finally:
        subprocess.run(["umount", str(path)], check=True)


def _fill(disk: Path, leave: int = 0) -> None:
    room = os.statvfs(disk)
    with (disk / "filler").open("wb", buffering=0) as file:
        file.write(bytes(room.f_bavail * room.f_bsize - leave))
