"""Confines a process that is about to run code written by a model. Linux, standard library only.

Files by Landlock, system calls by a seccomp filter, memory and file sizes by resource limits. None of it can be undone,
and threads started later inherit it. What a system cannot enforce is said by `enforced`, never passed over.
"""

import ctypes
import os
import resource
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from xspec.benchmarks import confinement_filter as filter_

MAX_FILE_BYTES = 256 * 2**20

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same numbers on every architecture
_ABI_OF_KERNEL, _PATH_BENEATH = 1, 1
_PR_SET_NO_NEW_PRIVS, _PR_GET_SECCOMP, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 38, 21, 22, 2

_READ_FILE, _LIST, _WRITE_FILE, _TRUNCATE = 1 << 2, 1 << 3, 1 << 1, 1 << 14
_MAKE_AND_REMOVE = (
    1 << 4 | 1 << 5 | 1 << 7 | 1 << 8
)  # folders and plain files; no links, pipes, sockets, devices
_READ = _READ_FILE | _LIST
_WRITE = _READ | _WRITE_FILE | _TRUNCATE | _MAKE_AND_REMOVE
_OF_ONE_FILE = _READ_FILE | _WRITE_FILE | _TRUNCATE
_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
"""Landlock version → how many rights it knows, the lowest bits; a later one knows no others about files."""
_NET, _SCOPES = 0b11, 0b11

_ALWAYS_READ = (
    os.path.dirname(os.path.abspath(__file__)),  # tracebacks show source lines, and engines read them back
    sys.prefix,
    os.path.join(sys.base_prefix, "lib"),
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/usr/share/zoneinfo",
    "/etc/localtime",
    "/dev/urandom",
)
_ALWAYS_WRITE = ("/dev/null",)

_LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


class ConfinementFailed(Exception):
    """Something that this system can enforce could not be put in force."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What a confined process may still use: files and folders to read and to write (and read), and how much more
    memory than it has now, in megabytes. Paths that don't exist are left out.
    """

    read: tuple[str, ...]
    write: tuple[str, ...]
    memory_mb: int


def confine(needs: Needs) -> None:
    """Confines this process, which must have one thread. Raises ConfinementFailed."""
    _limit(needs.memory_mb)
    if _LIBC is None:
        return
    if _LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise ConfinementFailed(f"no_new_privs: {_reason()}")
    if (abi := landlock_abi()) > 0:
        _restrict_files(abi, needs)
    if has_seccomp():
        _filter_calls()


def enforced() -> str:
    """What this system enforces, and loudly what it doesn't; for the lock and for `env check`."""
    abi, seccomp = landlock_abi(), has_seccomp()
    found = [f"files (Landlock {abi})"] if abi else []
    found += ["network, programs and signals (seccomp)"] if seccomp else []
    missing = [] if abi else ["files (no Landlock)"]
    missing += [] if seccomp else ["network, programs, signals (no seccomp)"]
    text = f"enforced: {', '.join([*found, 'memory and file sizes'])}"
    return f"{text}; NOT enforced: {', '.join(missing)}" if missing else text


def landlock_abi() -> int:
    """The version of Landlock that the kernel offers; 0 for none."""
    if _LIBC is None:
        return 0
    return max(0, int(_LIBC.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _ABI_OF_KERNEL)))


def has_seccomp() -> bool:
    return _LIBC is not None and filter_.known_machine() and _LIBC.prctl(_PR_GET_SECCOMP, 0, 0, 0, 0) >= 0


def _limit(memory_mb: int) -> None:
    """Memory is bounded as growth of private writable memory: what was there before a fork differs by machine."""
    for limit, most in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, MAX_FILE_BYTES)):
        resource.setrlimit(limit, (most, most))
    with suppress(OSError):  # no /proc: not Linux, where this limit says nothing about mapped memory
        with open("/proc/self/statm") as file:
            pages = int(file.read().split()[5])
        most = pages * resource.getpagesize() + memory_mb * 2**20
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def _restrict_files(abi: int, needs: Needs) -> None:
    """An older Landlock cannot restrict everything; TCP and signals are the filter's business as well."""
    assert _LIBC is not None
    rights = (1 << _RIGHTS.get(abi, 16)) - 1
    ruleset = _Ruleset(rights, _NET if abi >= 4 else 0, _SCOPES if abi >= 6 else 0)
    size = 8 if abi < 4 else 16 if abi < 6 else 24
    fd = _LIBC.syscall(_CREATE_RULESET, ctypes.byref(ruleset), ctypes.c_size_t(size), 0)
    if fd < 0:
        raise ConfinementFailed(f"landlock_create_ruleset: {_reason()}")
    try:
        _allow(fd, (*_ALWAYS_READ, *needs.read), _READ & rights)
        _allow(fd, (*_ALWAYS_WRITE, *needs.write), _WRITE & rights)
        if _LIBC.syscall(_RESTRICT_SELF, fd, 0) != 0:
            raise ConfinementFailed(f"landlock_restrict_self: {_reason()}")
    finally:
        os.close(fd)


def _allow(ruleset: int, paths: Iterable[str], rights: int) -> None:
    assert _LIBC is not None
    for path in paths:
        try:
            parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        try:
            given = rights if os.path.isdir(path) else rights & _OF_ONE_FILE
            rule = _PathBeneath(given, parent)
            if _LIBC.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(rule), 0) != 0:
                raise ConfinementFailed(f"landlock_add_rule for {path}: {_reason()}")
        finally:
            os.close(parent)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def _filter_calls() -> None:
    assert _LIBC is not None
    instructions = filter_.program(os.getpid())
    program = _Program(len(instructions) // filter_.INSTRUCTION.size, instructions)
    if _LIBC.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0) != 0:
        raise ConfinementFailed(f"seccomp: {_reason()}")


def _reason() -> str:
    return os.strerror(ctypes.get_errno())
