"""The trial that a caller says its call belongs to: by the path `/t/<run>/<task>/v1/…`, or by a header.

Path and header are what any client can be made to send, as a base URL or a default header.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass

from xspec.benchmarks.external import ANY_TASK, EXTERNAL
from xspec.errors import UserError
from xspec.gateway.conversations import CONVERSATION, By, Trial
from xspec.spec.models import ExperimentSpec

HEADER = "x-xspec-trial"
"""Its value is `<run>/<task>`."""

_PATH = re.compile(r"/t/([^/]+)/([^/]+)(/v1/.*)")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,199}")


class NoSuchTrial(UserError):
    """A call names a trial that the spec does not have."""


@dataclass(frozen=True, slots=True)
class Attributed:
    """The trial, if one is named, how it was, and the path without it. `wrong` says that the spec has none like it."""

    trial: Trial | None
    by: By
    path: str
    wrong: NoSuchTrial | None = None


class Attribution:
    """Reads the trial off requests, whose paths are decoded. Any task name will do if the spec names none."""

    def __init__(self, spec: ExperimentSpec) -> None:
        benchmark = spec.benchmark
        self._k = spec.k
        self._runs = frozenset(map(str, range(spec.k)))  # as they are written: 00 and +1 are no runs
        any_task = benchmark.kind == EXTERNAL and benchmark.tasks == (ANY_TASK,)
        self._tasks: Collection[str] | None = None if any_task else frozenset(benchmark.tasks)

    def of(self, path: str, header: str | None) -> Attributed:
        """The path wins over the header."""
        match = _PATH.fullmatch(path)
        if match is not None:
            return self._named(match[1], match[2], "path", match[3])
        if header is not None:
            run, _, task = header.strip().partition("/")
            return self._named(run, task, "header", path)
        return Attributed(None, "order", path)

    def _named(self, run: str, task: str, by: By, path: str) -> Attributed:
        try:
            return Attributed(self._trial(run, task), by, path)
        except NoSuchTrial as wrong:
            return Attributed(None, "order", path, wrong)

    def _trial(self, run: str, task: str) -> Trial:
        if run not in self._runs:
            raise NoSuchTrial(
                f"there is no run {run[:20]!r}: the spec has the runs 0 to {self._k - 1} (k={self._k})"
            )
        if self._tasks is not None and task not in self._tasks:
            raise NoSuchTrial(f"the spec has no task {task[:80]!r}")
        if _NAME.fullmatch(task) is None:
            raise NoSuchTrial(f"{task[:80]!r} is no task name: letters, digits, dots, dashes and underscores")
        if task.startswith(CONVERSATION):
            raise NoSuchTrial(f"{task[:80]!r} is what calls that name no trial are kept under")
        return int(run), task
