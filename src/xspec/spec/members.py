"""The member sections, one a kind of endpoint: who serves calls."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from xspec.spec.sampling import SamplingSpec
from xspec.spec.sections import EnvName, Name, Rate, Section, Sha256, Text

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
    call or block of code, that it arrives unparsable: the one fault that the agent can see.
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
