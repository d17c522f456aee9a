"""Standard output for people: a terminal, a file, or a pipe whose reader may have seen enough."""

import os
import sys

from rich.console import Console


class Output(Console):
    """A console of Rich's. A reader that goes away (`| head -1`) does not end the command, nor change its exit code."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
