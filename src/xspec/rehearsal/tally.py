"""What the server saw, so that a journal of attempts can be reconciled with it."""

from collections import Counter, defaultdict
from typing import Any

from xspec.rehearsal.address import TrialAddress


class Tally:
    """Counts every completions request under exactly one status, in all and by execution and member.

    A status is an HTTP status or, where the client got no usable HTTP reply in time, a pseudo-status:
    `stall`, `reset`, `truncated` (cut JSON in whole HTTP), `closed_early`. So the counts of `statuses` add up
    to `requests`. `faults` counts what a status cannot show, `other_model` and `garbled_arguments`; `others`
    counts requests for other paths, by status.
    """

    def __init__(self) -> None:
        self._statuses: Counter[str] = Counter()
        self._members: defaultdict[str, defaultdict[str, Counter[str]]] = defaultdict(
            lambda: defaultdict(Counter)
        )
        self._faults: Counter[str] = Counter()
        self._others: Counter[str] = Counter()

    def request(self, status: int | str, trial: TrialAddress | None) -> None:
        """Count a completions request. `trial` is None if it named none."""
        self._statuses[str(status)] += 1
        if trial is not None:
            self._members[trial.execution][trial.member][str(status)] += 1

    def fault(self, kind: str) -> None:
        """Count a fault that the status does not show."""
        self._faults[kind] += 1

    def other(self, status: int) -> None:
        """Count a request for anything but a completion, malformed ones included."""
        self._others[str(status)] += 1

    def plain(self) -> dict[str, Any]:
        """The body of GET /stats."""
        return {
            "requests": self._statuses.total(),
            "statuses": dict(self._statuses),
            "faults": dict(self._faults),
            "others": dict(self._others),
            "executions": {
                execution: {member: dict(statuses) for member, statuses in members.items()}
                for execution, members in self._members.items()
            },
        }
