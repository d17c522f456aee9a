"""A launcher's job process must not outlive the sweep that started it, however that ended."""

import os
import signal
import threading
import time

POLL_S = 0.5
GRACE_S = 20.0


def end_with_parent() -> None:
    """Watches the parent; when it is gone, asks this process to stop as Ctrl-C would, and then makes it.

    Launchers such as loky let their processes wait for work from a parent that was killed.
    """
    if not any(thread.name == "end-with-parent" for thread in threading.enumerate()):
        threading.Thread(target=_watch, args=(os.getppid(),), name="end-with-parent", daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(POLL_S)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE_S)
    os._exit(3)
