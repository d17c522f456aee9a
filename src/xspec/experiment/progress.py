"""What a person sees while trials run: counts, rate and time left on a terminal, and nothing elsewhere."""

import sys
from collections import Counter
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from xspec.records.rows import Trial


class ProgressDisplay:
    """A bar on standard error if that is a terminal; `quiet` if other processes would draw theirs over it."""

    def __init__(self, total: int, done: int, *, quiet: bool = False) -> None:
        console = Console(file=sys.stderr)
        self._counts: Counter[str] = Counter()
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            console=console,
            disable=quiet or not console.is_terminal,
            transient=True,
        )
        self._bar = self._progress.add_task("trials", total=total, completed=done, rate="")

    def ended(self, trial: Trial) -> None:
        """Counts one finished trial."""
        self._counts[trial.outcome] += 1
        shown = " ".join(f"{self._counts[o]} {o}" for o in ("pass", "fail", "invalid") if self._counts[o])
        speed = self._progress.tasks[0].speed
        self._progress.update(self._bar, advance=1, rate=f"{shown}  {speed * 60:.0f}/min" if speed else shown)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()
