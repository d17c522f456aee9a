"""Every error xspec raises on purpose.

    XspecError                    exit code 3 unless a subclass says otherwise
    ├── UserError                 2  the input is wrong: one line, nothing sent, nothing left half-written
    │   ├── SpecError                the composed experiment is not a valid spec
    │   ├── StoreError               the store cannot be used, or holds something that is not what it claims
    │   ├── SecretExposed            something that looks like a key stands where it would be written down
    │   └── EnvironmentMissing       what a benchmark runs in has to be made first
    ├── EnvironmentFailed         3  an environment could not be made
    ├── SpecDrift                 3  a request about to leave differs from the frozen spec; it was not sent
    ├── RouteStopped              3  the route cannot serve this execution: going on would only burn money
    ├── DiskFailed                3  the store stopped taking what must be written
    └── WorkerError               3  a benchmark worker could not be started, died or hung
        ├── WorkerDied
        │   └── ZygoteDied           with the zygote, so by no doing of its own
        └── WorkerHung

Messages say what was got, where, and what would be right. They never contain a key.
"""


class XspecError(Exception):
    """Base of all errors raised on purpose."""

    exit_code = 3


class UserError(XspecError):
    """The user's input is wrong. Shown as one line, without a traceback."""

    exit_code = 2


class SpecError(UserError):
    """The composed experiment is not a valid spec."""


class StoreError(UserError):
    """The store cannot be used, or an object in it is not what its name claims."""


class SecretExposed(UserError):
    """A key, or something that looks like one, stands where it would be written down. Never echoes it."""


class EnvironmentMissing(UserError):
    """What a benchmark or a tool runs in has to be made first. The message holds the command."""


class EnvironmentFailed(XspecError):
    """An environment could not be made, or does not run."""


class SpecDrift(XspecError):
    """A request about to leave differs from the frozen spec. Nothing was sent.

    `field` names the part of the request, `frozen` what the spec says, `live` what was about to be sent.
    Values of secrets are replaced by their fingerprints before they get here.
    """

    def __init__(self, field: str, frozen: object, live: object) -> None:
        super().__init__(f"spec drift in {field}: frozen {frozen!r}, live {live!r}; the request was not sent")
        self.field = field
        self.frozen = frozen
        self.live = live


class RouteStopped(XspecError):
    """The route refuses in a way that retrying cannot mend. `cause` is a short token, `hint` what to do."""

    def __init__(self, cause: str, what: str, hint: str) -> None:
        super().__init__(f"{what}; {hint}")
        self.cause = cause
        self.hint = hint


class DiskFailed(XspecError):
    """The store stopped taking what must be written. What was written before is whole; `reason` is the disk's."""

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(f"{what}: {reason}")
        self.reason = reason


class WorkerError(XspecError):
    """A benchmark worker could not be started, or broke."""


class WorkerDied(WorkerError):
    """The worker process ended while a request was waiting for its answer."""


class ZygoteDied(WorkerDied):
    """The zygote ended, and every worker of it: that is the machine's doing, whatever a worker was asked."""


class WorkerHung(WorkerError):
    """The worker did not answer within its time limit and was killed."""
