"""`python -m xspec` that is interrupted, as by Ctrl-C, when it has come so far: run by test_interrupts.

The first two arguments are what is counted and how often it happens before: an audit event, or `callback`, which is
the import system's, of the weak reference to a module's lock. No exception can leave that one.
"""

import os
import signal
import sys
from types import FrameType
from typing import Any

from xspec.__main__ import main

COUNTED, LEFT = sys.argv[1], [int(sys.argv[2])]


def _happened() -> None:
    LEFT[0] -= 1
    if LEFT[0] == 0:
        sys.setprofile(None)
        os.kill(os.getpid(), signal.SIGINT)


def _audit(event: str, arguments: Any) -> None:
    if event == COUNTED:
        _happened()


def _profile(frame: FrameType, event: str, argument: Any) -> None:
    code = frame.f_code
    if event == "call" and code.co_name == "cb" and "importlib._bootstrap" in code.co_filename:
        _happened()


if __name__ == "__main__":
    if COUNTED == "callback":
        sys.setprofile(_profile)
    else:
        sys.addaudithook(_audit)
    raise SystemExit(main(sys.argv[3:]))
