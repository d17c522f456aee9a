"""Benchmarks whose texts may not be passed on as they are. A new one is one line in PROTECTED.

The local store keeps everything whole. What is made to be passed on (reports, exports, MLflow artifacts) leaves
the texts of tasks and trials out, says why, and takes them in when the user says so.
"""

PROTECTED: dict[str, str] = {
    "appworld": "AppWorld's licence lets what derives from its protected part be made public only encrypted",
}
"""Kind of benchmark → the reason, a sentence without a full stop."""

INCLUDE = "--include-protected"


def protection_of(kind: str) -> str | None:
    """Why the benchmark's texts are protected; None if they are not."""
    return PROTECTED.get(kind)


def left_out(kind: str) -> str:
    """What stands in place of a protected text."""
    return f"left out: {PROTECTED[kind]}; {INCLUDE} puts it in"
