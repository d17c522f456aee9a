"""Outlives a gateway that is killed, and ends its command for it. A program of its own, standard library only.

Its first line of input is the process group. The input then closes when the gateway is gone, however it went.
"""

import contextlib
import os
import signal
import sys

if __name__ == "__main__":
    group = sys.stdin.readline()
    sys.stdin.read()
    with contextlib.suppress(ProcessLookupError, PermissionError, ValueError):
        os.killpg(int(group), signal.SIGKILL)
