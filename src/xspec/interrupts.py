"""Ctrl-C that nothing swallows.

Python raises KeyboardInterrupt wherever the main thread happens to be. In a callback of the interpreter's (of a weak
reference, a finalizer) no exception can propagate: it is printed and forgotten, and the program goes on as if nobody
had pressed a key. The import system has such a callback for the lock of every module, so that in the seconds in which
a command imports what it needs about one interrupt in fifteen was lost.
"""

import _thread
import contextlib
import sys
import time
from collections.abc import Iterator

AGAIN_S = 0.01
"""Until a swallowed interrupt is raised again: long enough for a callback to be over."""


@contextlib.contextmanager
def kept_interrupts() -> Iterator[None]:
    """Within it, an interrupt that a callback swallows comes again until it is heard, by whoever handles it then."""
    before = sys.unraisablehook

    def hook(swallowed: "sys.UnraisableHookArgs", /) -> None:
        if issubclass(swallowed.exc_type, KeyboardInterrupt):
            _thread.start_new_thread(_interrupt_again, ())
        else:
            before(swallowed)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = before


def _interrupt_again() -> None:
    time.sleep(AGAIN_S)
    _thread.interrupt_main()
