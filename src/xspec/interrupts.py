"""Ctrl-C is heard at any moment, also while the program still loads.

Python drops an exception that is raised inside a finaliser or a lock's callback, and importing runs many of those. So
the interrupt is remembered as well as raised, and whoever is about to begin something asks once more.
"""

import signal
import sys
from types import FrameType

_heard = False


def listen() -> None:
    """Remembers interrupts from now on. Where they are ignored, as for a job in the background, they stay ignored."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _hear)
        sys.unraisablehook = _quiet


def heed() -> None:
    """Raises KeyboardInterrupt if one was dropped; from here on the usual handling is in force."""
    if signal.getsignal(signal.SIGINT) is _hear:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if _heard:
        raise KeyboardInterrupt


def _hear(number: int, frame: FrameType | None) -> None:
    global _heard
    _heard = True
    raise KeyboardInterrupt


def _quiet(dropped: "sys.UnraisableHookArgs") -> None:
    if not isinstance(dropped.exc_value, KeyboardInterrupt):
        sys.__unraisablehook__(dropped)
