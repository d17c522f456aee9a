"""`python -m xspec`: a verb goes to its command, anything else to Hydra as overrides of an experiment."""

import errno
import gc
import os
import resource
import sys
from collections.abc import Sequence

from xspec.interrupts import kept_interrupts

DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO)
"""What a disk says that takes no more: nobody's mistake, so no traceback."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command line (without the program's name); returns its exit code. Bad input is one line, no traceback."""
    try:
        with kept_interrupts():
            return _run(list(sys.argv[1:] if arguments is None else arguments))
    except KeyboardInterrupt:
        print("xspec: interrupted", file=sys.stderr)
        return 130


def _run(given: list[str]) -> int:
    # Before NumPy is imported: the products are small, and its threads would spin on them.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from xspec.cli import dispatch, split_command
    from xspec.cli.environment import load_dotenv
    from xspec.errors import XspecError
    from xspec.spec.secrets import scan_arguments, scan_command

    # A core dump would write the keys to disk, as memory that nobody thinks of as a log.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    try:
        load_dotenv()
        own, command = split_command(given)
        scan_arguments(own, os.environ)
        scan_command(command, os.environ)
        code = dispatch(given)
        sys.stdout.flush()
        return code
    except XspecError as error:
        print(f"xspec: {error}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        if error.errno not in DISK_ERRORS:
            raise
        where = f" {error.filename}" if error.filename else ""
        print(f"xspec: cannot write{where}: {error.strerror}; make room, then run it again", file=sys.stderr)
        return 3


if __name__ == "__main__":
    # What a command makes lives until it ends, most of it modules: the collector looks less often (a fifth of a start).
    gc.set_threshold(50_000, 20, 100)
    raise SystemExit(main())
