"""What a block of code prints in AppWorld's engine, held in bounded memory. Runs in the environment `appworld`."""

import io
import sys
from typing import Any

KEPT_CHARS = 1_000_000
"""So many characters of what a block of code prints are kept; the rest is counted."""


class BoundedText(io.TextIOBase):
    """Standard output that keeps the first KEPT_CHARS characters and says how many there were."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._kept = 0
        self._written = 0

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        self._written += len(text)
        if self._kept < KEPT_CHARS and text:
            self._parts.append(text[: KEPT_CHARS - self._kept])
            self._kept += len(self._parts[-1])
        return len(text)

    def getvalue(self) -> str:
        text = "".join(self._parts)
        if self._written > self._kept:
            text += f"\n[output cut: {self._kept} of {self._written} characters were kept]"
        return text


def bounded_capture() -> type:
    """The engine's capture of output, with a bound on what it keeps."""
    from IPython.utils.capture import CapturedIO, capture_output  # type: ignore[import-not-found]

    class BoundedCapture(capture_output):  # type: ignore[misc]
        def __enter__(self) -> Any:
            captured = super().__enter__()
            sys.stdout, sys.stderr = BoundedText(), BoundedText()
            return CapturedIO(sys.stdout, sys.stderr, captured._outputs)

    return BoundedCapture
