"""Counting attempts, the one thing the server remembers about a trial."""


class Attempts:
    """How often the current step of each trial was asked for in vain.

    The count begins at 0 when a trial comes to another step, so also when it is begun anew at step 0, and
    after a reply that the client could use: what is asked again after that is not a retry.
    """

    def __init__(self) -> None:
        self._current: dict[tuple[str, int, str], tuple[int, int]] = {}

    def next(self, execution: str, run: int, task: str, step: int) -> int:
        """The number of this attempt at the step, from 0."""
        trial = (execution, run, task)
        last_step, tried = self._current.get(trial, (step, 0))
        attempt = tried if step == last_step else 0
        self._current[trial] = (step, attempt + 1)
        return attempt

    def answered(self, execution: str, run: int, task: str) -> None:
        """The last attempt got a usable reply."""
        self._current.pop((execution, run, task), None)
