"""The retry policy: tenacity, composed of small callables over one call's tally."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception

from xspec.route.faults import Answered, Fault
from xspec.spec.models import RetryPolicy

Sleep = Callable[[float], Awaitable[None]]

_FLOOR_S = 0.01
_FLOOR_MAX_S = 1.0


class AttemptFailed(Exception):
    """Carries a Fault through tenacity, and what the provider answered, if it did."""

    def __init__(self, fault: Fault, answered: Answered | None = None) -> None:
        super().__init__(fault.what)
        self.fault = fault
        self.answered = answered


@dataclass(slots=True)
class Tally:
    """What one call has used up so far. `spent` attempts count against max_attempts, 429s do not."""

    attempts: int = 0
    spent: int = 0
    limited: int = 0
    limited_s: float = 0.0
    waited_s: float = 0.0
    """All that was waited: pauses between attempts and the queue before them."""
    pause_s: float = 0.0
    """The pause just before the attempt under way."""
    since: float = field(default_factory=time.monotonic)
    """When the call began, by which the pacer lets older calls go first."""
    waited_out: int = 0
    """The pacer's pause that the call's own waiting covers."""

    def count(self, fault: Fault) -> None:
        if fault.again == "wait":
            self.limited += 1
        else:
            self.spent += 1


def backoff(policy: RetryPolicy, n: int) -> float:
    """Seconds before the attempt that follows the nth failure. No jitter: the spec fixes what is waited."""
    if policy.backoff_s == 0:
        return 0.0
    try:
        return min(policy.backoff_s * float(policy.backoff_base ** (n - 1)), policy.backoff_max_s)
    except OverflowError:
        return policy.backoff_max_s


def limited_wait(policy: RetryPolicy, fault: Fault, n: int) -> float:
    """Seconds to wait out the nth 429: what the provider asked for, else the backoff.

    Never nothing: a 429 uses up no attempts, so a wait of zero would ask for ever.
    """
    floor = min(_FLOOR_S * 2.0 ** min(n - 1, 30), _FLOOR_MAX_S)
    return max(fault.wait_s if fault.wait_s is not None else backoff(policy, n), floor)


def retrying(policy: RetryPolicy, max_wait_s: float, tally: Tally, sleep: Sleep) -> AsyncRetrying:
    """A loop that goes on while the fault allows it, attempts are left, and 429 waits fit max_wait_s."""

    def wait(state: RetryCallState) -> float:
        fault = _fault(state)
        if fault.again == "wait":
            return limited_wait(policy, fault, tally.limited)
        return backoff(policy, tally.spent)

    def stop(state: RetryCallState) -> bool:
        if _fault(state).again == "wait":
            return tally.limited_s + float(state.upcoming_sleep) > max_wait_s
        return tally.spent >= policy.max_attempts

    def before_sleep(state: RetryCallState) -> None:
        tally.pause_s = state.upcoming_sleep
        if _fault(state).again == "wait":
            tally.limited_s += state.upcoming_sleep

    return AsyncRetrying(
        sleep=sleep,
        wait=wait,
        stop=stop,
        retry=retry_if_exception(
            lambda error: isinstance(error, AttemptFailed) and error.fault.again != "no"
        ),
        before_sleep=before_sleep,
        reraise=True,
    )


def _fault(state: RetryCallState) -> Fault:
    error = state.outcome.exception() if state.outcome is not None else None
    assert isinstance(error, AttemptFailed)
    return error.fault
