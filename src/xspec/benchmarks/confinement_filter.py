"""The seccomp filter of a confined process: the system calls that fail in it. Standard library only.

Numbers are those of the kernel's tables (`syscall_64.tbl` of x86, `asm-generic/unistd.h`), the program is classic BPF
over `struct seccomp_data` (`linux/seccomp.h`).
"""

import errno
import platform
import struct

INSTRUCTION = struct.Struct("HBBI")
"""Code, how many instructions to skip if true and if false, constant."""

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _FAIL = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER, _MACHINE, _ARGUMENTS = 0, 4, 16  # offsets; an argument has eight bytes, the low half first
_CLONE_THREAD = 0x10000
_FOREIGN_NUMBERS = 0x40000000  # x86-64 takes calls of another table from here on

_MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

_DENIED: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "a way to other machines: socket": ((41,), (198,)),
    "other programs: fork, vfork, execve, execveat": ((57, 58, 59, 322), (221, 281)),
    "other processes: ptrace, process_vm_*, kcmp, pidfd_*": (
        (101, 310, 311, 312, 438, 424),
        (117, 270, 271, 272, 438, 424),
    ),
    "signals beside kill and tgkill": ((200, 129, 297), (130, 138, 240)),
    "calls that no filter sees: io_uring_setup": ((425,), (425,)),
    "files by other names: open_by_handle_at": ((304,), (265,)),
    "modes and owners, which Landlock leaves alone": (
        (90, 91, 92, 93, 94, 260, 268, 452, 188, 189, 190, 197, 198, 199),
        (52, 53, 54, 55, 452, 5, 6, 7, 14, 15, 16),
    ),
    "times of files: utime, utimes, futimesat, utimensat": ((132, 235, 261, 280), (88,)),
    "memory that outlives a process: shmget, semget, msgget, mq_open": (
        (29, 64, 68, 240),
        (194, 190, 186, 180),
    ),
    "the kernel: bpf, perf_event_open, userfaultfd, keys": (
        (321, 298, 323, 248, 249, 250),
        (280, 241, 282, 217, 218, 219),
    ),
    "the system: unshare, setns, mounts, chroot, modules, kexec, reboot, swap, clock": (
        (272, 308, 165, 166, 155, 161, 175, 313, 176, 246, 169, 167, 164, 227),
        (97, 268, 40, 39, 41, 51, 105, 273, 106, 104, 142, 224, 170, 112),
    ),
    "limits: setrlimit": ((160,), (164,)),
}
_CLONE, _CLONE3, _KILL_CALL, _TGKILL, _PRLIMIT = (56, 220), (435, 435), (62, 129), (234, 131), (302, 261)


def known_machine() -> bool:
    """Whether there are numbers for this machine, running a program of its own width."""
    return platform.machine() in _MACHINES and struct.calcsize("P") == 8


def program(pid: int) -> bytes:
    """The filter for the process `pid`: it may send signals to itself, start threads, and ask for limits."""
    column = list(_MACHINES).index(platform.machine())
    fail = _returns(_FAIL | errno.EPERM)
    denied = sorted({number for numbers in _DENIED.values() for number in numbers[column]})
    parts = [
        _load(_MACHINE) + _unless_equal(_MACHINES[platform.machine()], _returns(_KILL)),
        _load(_NUMBER) + _jump(_AT_LEAST, _FOREIGN_NUMBERS, 0, 1) + fail,
        *(_if_equal(number, fail) for number in denied),
        # Only a filter by flags tells a thread from a process, and clone3 hides its flags: without it, clone is used.
        _if_equal(_CLONE3[column], _returns(_FAIL | errno.ENOSYS)),
        _if_equal(
            _CLONE[column], _load(_ARGUMENTS) + _jump(_ANY_BIT, _CLONE_THREAD, 1, 0) + fail + _returns(_ALLOW)
        ),
        *(_if_equal(call[column], _only_to(pid, fail)) for call in (_KILL_CALL, _TGKILL)),
        _if_equal(_PRLIMIT[column], _only_asking(fail)),
        _returns(_ALLOW),
    ]
    return b"".join(parts)


def _only_to(pid: int, fail: bytes) -> bytes:
    """Allows a signal to the process itself or, by 0, to its own group."""
    return _load(_ARGUMENTS) + _jump(_EQUAL, pid, 2, 0) + _jump(_EQUAL, 0, 1, 0) + fail + _returns(_ALLOW)


def _only_asking(fail: bytes) -> bytes:
    """Allows prlimit64 without new limits: its third argument is then null."""
    new = _ARGUMENTS + 16
    high = _load(new + 4) + _jump(_EQUAL, 0, 1, 0) + fail
    return _load(new) + _jump(_EQUAL, 0, 1, 0) + fail + high + _returns(_ALLOW)


def _if_equal(value: int, then: bytes) -> bytes:
    return _jump(_EQUAL, value, 0, len(then) // INSTRUCTION.size) + then


def _unless_equal(value: int, then: bytes) -> bytes:
    return _jump(_EQUAL, value, len(then) // INSTRUCTION.size, 0) + then


def _load(offset: int) -> bytes:
    return INSTRUCTION.pack(_LOAD, 0, 0, offset)


def _jump(code: int, value: int, if_true: int, if_false: int) -> bytes:
    return INSTRUCTION.pack(code, if_true, if_false, value)


def _returns(value: int) -> bytes:
    return INSTRUCTION.pack(_RETURN, 0, 0, value)
