"""What a command says beside its result."""

import sys


def say(line: str) -> None:
    """One line to standard error."""
    print(f"xspec: {line}", file=sys.stderr)
