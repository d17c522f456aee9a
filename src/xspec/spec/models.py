"""The frozen experiment: everything that can change a result, and nothing else.

Sections are tagged by `kind`. An absent optional field is left out of the canonical bytes, so a field added
later does not rename the specs that never used it.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from xspec.spec.canonical import DIGEST, canonical_bytes, short_id

Digest = Annotated[str, StringConstraints(pattern=f"^{DIGEST.pattern}$")]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
"""Of a file that the store does not keep; a Digest names a blob that it does."""
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=200)]
EnvName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
Text = Annotated[str, StringConstraints(min_length=1)]
Rate = Annotated[float, Field(ge=0, le=1)]
Seconds = Annotated[float, Field(gt=0, le=86_400)]


class Section(BaseModel):
    """A frozen, closed, strictly typed part of a spec. Errors never echo the offending value."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, hide_input_in_errors=True, allow_inf_nan=False
    )


class BenchmarkSpec(Section):
    """Which problems. `manifest` is the digest of what the worker says they contain (see benchmarks.protocol)."""

    kind: Name
    version: Text
    split: Text
    settings: dict[str, bool | int | float | str] | None = None
    tasks: Annotated[tuple[Name, ...], Field(min_length=1)]
    manifest: Digest

    @model_validator(mode="after")
    def _tasks_are_distinct(self) -> Self:
        if len(set(self.tasks)) != len(self.tasks):
            raise ValueError("a task stands twice in the list")
        return self


class ToolLoopAgent(Section):
    """An agent that answers with tool calls until it answers with text. `prompt` is the digest of its system text."""

    kind: Literal["tool_loop"]
    version: Annotated[int, Field(ge=1)]
    max_steps: Annotated[int, Field(ge=1, le=1000)]
    tool_timeout_s: Seconds
    prompt: Digest
    tools: tuple[Name, ...] | None = None


class JsonChoiceAgent(Section):
    """An agent for models without native tool calls: each reply is one choice that a JSON schema constrains.

    The schema, sent as `response_format`, follows from the task's tools. The trial ends with a final answer, or
    with the observation of tool call number `max_calls` (null: only with a final answer).
    """

    kind: Literal["json_choice"]
    version: Annotated[int, Field(ge=1)]
    max_steps: Annotated[int, Field(ge=1, le=1000)]
    tool_timeout_s: Seconds
    prompt: Digest
    tools: tuple[Name, ...] | None = None
    max_calls: Annotated[int, Field(ge=1, le=1000)] | None = None


AgentSpec = Annotated[ToolLoopAgent | JsonChoiceAgent, Field(discriminator="kind")]


_FIXED_BODY_FIELDS = (
    "model",
    "messages",
    "tools",
    "tool_choice",
    "functions",
    "function_call",
    "stream",
    "stream_options",
    "n",
)


class OpenAIMember(Section):
    """One OpenAI-compatible endpoint. `extra_body` is sent as it stands (a router's pin belongs there)."""

    kind: Literal["openai"]
    name: Name
    base_url: Text
    path: Annotated[str, StringConstraints(pattern=r"^/[A-Za-z0-9._~/-]+$")]
    model: Text
    api_key_env: EnvName
    expect_served: Text | None = None
    extra_body: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _extra_body_is_extra(self) -> Self:
        taken = sorted({*_FIXED_BODY_FIELDS, *SamplingSpec.model_fields} & set(self.extra_body or ()))
        if taken:
            raise ValueError(f"extra_body holds {taken[0]}, which the spec fixes elsewhere")
        return self


class RehearsalBehaviour(Section):
    """How the simulated model errs. Rates are chances; xspec.rehearsal.behaviour says what each one does.

    `unstable_tasks` is the share of tasks with a decision point at which a trial may flip into a failure,
    the flip chance drawn from Beta(`flip_alpha`, `flip_beta`); `hopeless_tasks` is the share that always
    fails, guide or not. Which tasks these are depends on `difficulty_seed` and the task alone. `detour` is
    the chance, a call, of an extra read. A guide multiplies the chances of flips and detours by
    1 - `guide_effect`. `replan` is the chance that the model gives up after an error it could see.
    """

    unstable_tasks: Rate
    hopeless_tasks: Rate
    flip_alpha: Annotated[float, Field(gt=0, le=1000)]
    flip_beta: Annotated[float, Field(gt=0, le=1000)]
    detour: Rate
    guide_effect: Rate
    replan: Rate
    difficulty_seed: int

    @model_validator(mode="after")
    def _shares_of_tasks_fit(self) -> Self:
        if self.unstable_tasks + self.hopeless_tasks > 1:
            raise ValueError("unstable_tasks and hopeless_tasks are shares of one whole, and exceed 1")
        return self


class RehearsalFaults(Section):
    """Chances, an attempt, of each injected fault, and how long the timed ones last (seconds).

    The first six exclude one another, so their sum is at most 1. `garbled_arguments` is the chance, a tool
    call, that its arguments arrive unparsable: the one fault that the agent can see.
    """

    too_many_requests: Rate
    server_error: Rate
    stall: Rate
    reset: Rate
    truncated_json: Rate
    other_model: Rate
    garbled_arguments: Rate
    retry_after_s: Annotated[float, Field(ge=0, le=3600)]
    stall_s: Annotated[float, Field(ge=0, le=3600)]
    latency_s: Annotated[float, Field(ge=0, le=60)]

    @model_validator(mode="after")
    def _faults_exclude_one_another(self) -> Self:
        refused = self.too_many_requests + self.server_error
        broken = self.stall + self.reset + self.truncated_json
        if refused + broken + self.other_model > 1:
            raise ValueError("the chances of faults that exclude one another add up to more than 1")
        return self


class RehearsalMember(Section):
    """The simulated model. Its settings are identity; a Binding of the stint gives the address."""

    kind: Literal["rehearsal"]
    name: Name
    model: Text
    behaviour: RehearsalBehaviour
    faults: RehearsalFaults
    expect_served: Text | None = None


class LocalMember(Section):
    """A small real model, served on this machine by a process that xspec starts: its settings are identity.

    `gguf_sha256` is of the model's file. `n_ctx` is the context of one request, in tokens; `n_parallel` is how many
    requests the server computes at once, in one batch; `threads` is how many cores it uses. `cache_prompt`
    keeps what two successive prompts share, which is faster and lets a reply depend on the request before it.
    """

    kind: Literal["local"]
    name: Name
    model: Name
    gguf_sha256: Sha256
    n_ctx: Annotated[int, Field(ge=256, le=131_072)]
    n_parallel: Annotated[int, Field(ge=1, le=64)]
    threads: Annotated[int, Field(ge=1, le=256)]
    cache_prompt: bool
    expect_served: Text | None = None


Member = Annotated[OpenAIMember | RehearsalMember | LocalMember, Field(discriminator="kind")]


class RetryPolicy(Section):
    """Waits `backoff_s · backoff_base^(n-1)`, at most `backoff_max_s`, before attempt n+1."""

    max_attempts: Annotated[int, Field(ge=1, le=100)]
    backoff_s: Annotated[float, Field(ge=0, le=3600)]
    backoff_base: Annotated[float, Field(ge=1, le=100)]
    backoff_max_s: Annotated[float, Field(ge=0, le=3600)]
    statuses: tuple[Annotated[int, Field(ge=400, le=599)], ...]
    timeouts: bool
    connection_errors: bool


class RouteSpec(Section):
    """Where calls go and how. `floating` picks a member by a pure function of `seed` and the place of the call."""

    mode: Literal["fixed", "floating"]
    members: Annotated[tuple[Member, ...], Field(min_length=1)]
    granularity: Literal["call", "attempt"] | None = None
    seed: int | None = None
    timeout_s: Seconds
    max_wait_s: Annotated[float, Field(ge=0, le=86_400)]
    retry: RetryPolicy
    proxy: Text | None = None
    ca: Digest | None = None

    @model_validator(mode="after")
    def _mode_and_members_agree(self) -> Self:
        names = [m.name for m in self.members]
        if len(set(names)) != len(names):
            raise ValueError("two members share a name")
        if self.mode == "fixed" and len(self.members) != 1:
            raise ValueError(f"a fixed route has one member, not {len(self.members)}")
        if self.mode == "floating" and len(self.members) < 2:
            raise ValueError("a floating route needs at least two members")
        floating = self.mode == "floating"
        if (self.granularity is not None) != floating or (self.seed is not None) != floating:
            raise ValueError("granularity and seed belong to a floating route, and only to it")
        return self


class SamplingSpec(Section):
    """Body fields of every request. One that is null is not sent, and the guard checks that it isn't."""

    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    seed: int | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None
    presence_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    frequency_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    stop: Annotated[tuple[Text, ...], Field(min_length=1, max_length=4)] | None = None
    reasoning_effort: Text | None = None
    parallel_tool_calls: bool | None = None


class DriftPolicy(Section):
    """What a reply that is not what was pinned does to its trial."""

    served_model: Literal["invalidate", "record"]
    upstream: Literal["invalidate", "record"]
    fingerprint: Literal["invalidate", "record"]


class NoGuide(Section):
    kind: Literal["none"]


class RulesGuide(Section):
    """`digest` names a blob that holds the rules and the map task → rules (see xspec.guides)."""

    kind: Literal["rules"]
    digest: Digest


GuideSpec = Annotated[NoGuide | RulesGuide, Field(discriminator="kind")]


class ExperimentSpec(Section):
    """One arm's whole experiment."""

    scheme: Literal[1]
    benchmark: BenchmarkSpec
    agent: AgentSpec
    route: RouteSpec
    sampling: SamplingSpec
    drift: DriftPolicy
    guide: GuideSpec
    k: Annotated[int, Field(ge=1, le=1000)]

    @model_validator(mode="after")
    def _one_response_format(self) -> Self:
        if self.agent.kind == "json_choice":
            for member in self.route.members:
                if member.kind == "openai" and "response_format" in (member.extra_body or ()):
                    raise ValueError("extra_body holds response_format, which agent json_choice makes itself")
        return self

    def plain(self) -> dict[str, Any]:
        """Plain data without absent optional fields: what is hashed and stored."""
        return self.model_dump(mode="python", exclude_none=True)

    def canonical(self) -> bytes:
        return canonical_bytes(self.plain())

    @property
    def id(self) -> str:
        """`xs-` and 16 hex digits."""
        return short_id("xs", self.canonical())

    @property
    def condition_id(self) -> str:
        """`xc-` and 16 hex digits of the spec without k and without its task list: what is measured."""
        return short_id("xc", canonical_bytes(_without(self.plain())))


def _without(plain: Mapping[str, Any]) -> dict[str, Any]:
    rest = {key: value for key, value in plain.items() if key != "k"}
    rest["benchmark"] = {key: value for key, value in plain["benchmark"].items() if key != "tasks"}
    return rest
