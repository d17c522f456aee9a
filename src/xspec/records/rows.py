"""The rows an execution leaves behind. Times are wall-clock seconds since the epoch, durations are seconds.

Every row names its trial by `run` (0…k-1) and `task`, and the try at it by `take`: 0 for the first, one more each
time the trial is begun again (after a kill, a broken worker, or `--retry-invalid`).
"""

from dataclasses import dataclass, field
from typing import Any, Literal, get_args

Outcome = Literal["pass", "fail", "invalid"]
OUTCOMES = frozenset(get_args(Outcome))


@dataclass(frozen=True, slots=True)
class Place:
    """Where in an execution a model request stands. `call` counts the logical requests of one step."""

    run: int
    task: str
    take: int
    step: int
    call: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptStarted:
    """Written before an attempt leaves, so that a killed process still owns up to what it sent."""

    kind: Literal["attempt_started"] = "attempt_started"
    run: int
    task: str
    take: int
    step: int
    call: int
    attempt: int
    member: str
    at: float
    spec_id: str
    request_digest: str
    concurrency: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptEnded:
    """Written when an attempt returned. `attempt` counts from 0 within the call.

    `error` is None for a usable reply, else a token of xspec.route.faults. `waited_s` is the pause before this
    attempt with the time it queued for its turn, `latency_s` the time from sending to the whole reply. None in
    `served_model`, `fingerprint`, `upstream` and the token counts means the provider did not say.
    """

    kind: Literal["attempt"] = "attempt"
    run: int
    task: str
    take: int
    step: int
    call: int
    attempt: int
    member: str
    at: float
    status: int | None
    error: str | None
    waited_s: float
    latency_s: float
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    served_model: str | None = None
    fingerprint: str | None = None
    upstream: str | None = None
    request_ids: dict[str, str] = field(default_factory=dict)
    drift: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One agent turn: the messages it added, in order, and the digest of the request that began it.

    A message stands in the step that added it and nowhere else. Step 0 leaves out the system message (it follows
    from spec, guide and task) and holds the instruction. The assistant message among `added` is the reply;
    `actions` has one entry a tool call or block of code: the action sent to the world (None if it never got there),
    whether it failed, and, of code, the API `calls` it made. Enough to serve the trial again without a model.
    """

    kind: Literal["step"] = "step"
    run: int
    task: str
    take: int
    step: int
    at: float
    member: str
    request_digest: str
    finish_reason: str | None
    refusal: str | None
    actions: list[dict[str, Any]]
    added: list[dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """The last row of a trial. `cause` says why an outcome that is not `pass` came about, in one token."""

    kind: Literal["trial"] = "trial"
    run: int
    task: str
    take: int
    outcome: Outcome
    cause: str | None
    ended: str
    verdict: dict[str, Any] | None
    steps: int
    calls: int
    attempts: int
    retry_count: int
    prompt_tokens: int
    completion_tokens: int
    waited_s: float
    started_at: float
    ended_at: float
    drift: list[str] = field(default_factory=list)
    detail: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request that another program made through the gateway, written when it was over.

    `by` says how its place was found: by `path` or `header`, which its caller set, else by the `order` of
    conversations. `asked_digest` names the body as it came, `tools` its tool schemas (a blob). `changes` has an entry
    for each field that was sent (or would have been, had the call not been refused) otherwise than asked, without
    `asked` or `sent` where only one of the bodies had the field; `asked` null asks for nothing, too. `observed` are
    the fields that went out as they came. `again`: the same body came before, and this is a `retry` of the harness's
    own (that call had failed, or the caller says so) or a `repeat` (it was answered).

    `ended` is `answered`, `refused` (what was asked is none or contradicts the spec), `failed` (no usable reply),
    `stopped` (nor will there be one), `broken` (in the middle of a stream) or `gone` (the caller went away); `why`
    explains it in one line. `status` is what the caller got, None if nothing. `drift` is what invalidates by the
    spec's policy. `others` are the messages of choices after the first, which stands in the step; of a repeat, all.
    """

    kind: Literal["call"] = "call"
    run: int
    task: str
    take: int
    step: int
    call: int
    at: float
    by: Literal["path", "header", "order"]
    endpoint: str
    streamed: bool
    asked_digest: str
    bytes: int
    tools: str | None
    changes: list[dict[str, Any]]
    observed: list[str]
    again: Literal["retry", "repeat"] | None
    ended: Literal["answered", "refused", "failed", "stopped", "broken", "gone"]
    status: int | None
    why: str | None
    latency_s: float
    drift: list[str] = field(default_factory=list)
    others: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed:
    """The last row of a gateway that was not killed: all its calls are over and have left their rows.

    `ended`: `done`; `failed`, its command's exit `code` says that something went wrong; `stopped`, the route refused
    to go on; `interrupted`, its command or what else called it was cut off. `code` is None without a command.
    """

    kind: Literal["closed"] = "closed"
    at: float
    ended: Literal["done", "failed", "stopped", "interrupted"]
    code: int | None


Row = AttemptStarted | AttemptEnded | Step | Trial | Call | Closed
