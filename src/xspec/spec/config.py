"""The composed configuration: what `conf/` and overrides add up to, before it is frozen into a spec.

Hydra composes, OmegaConf resolves once, and the plain result is validated here. It may name files and conveniences
(`limit`, `pool`, a guide's path); the spec made from it may not.
"""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from xspec.errors import SpecError
from xspec.spec.members import RehearsalBehaviour, RehearsalFaults
from xspec.spec.models import DriftPolicy, RetryPolicy
from xspec.spec.sampling import SamplingSpec
from xspec.spec.sections import EnvName, Name, Rate, Seconds, Section, Sha256, Text


class Exclusion(Section):
    """A task the benchmark's list leaves out, and why."""

    task: Name
    reason: Text


class BenchmarkConfig(Section):
    """`tasks` (an explicit list) or the whole split without `exclude`; then the first `limit` of them."""

    kind: Name
    version: Text
    split: Text
    settings: dict[str, bool | int | float | str] | None = None
    tasks: Annotated[tuple[Name, ...], Field(min_length=1)] | None = None
    limit: Annotated[int, Field(ge=1)] | None = None
    exclude: tuple[Exclusion, ...] = ()


class ToolLoopConfig(Section):
    """See ToolLoopAgent; `prompt` is the text itself here."""

    kind: Literal["tool_loop"]
    max_steps: int
    tool_timeout_s: Seconds
    tools: Annotated[tuple[Name, ...], Field(min_length=1)] | None = None
    prompt: Text


class JsonChoiceConfig(Section):
    """See JsonChoiceAgent; `prompt` is the text itself here."""

    kind: Literal["json_choice"]
    max_steps: int
    tool_timeout_s: Seconds
    tools: Annotated[tuple[Name, ...], Field(min_length=1)] | None = None
    prompt: Text
    max_calls: Annotated[int, Field(ge=1)] | None = None


class CodeReactConfig(Section):
    """See CodeReactAgent; `prompt` is the text itself here."""

    kind: Literal["code_react"]
    max_steps: int
    tool_timeout_s: Seconds
    max_output_chars: int
    prompt: Text


class OpenAIPoolMember(Section):
    """A further member of a floating route: what it does not say, it shares with the provider."""

    name: Name
    base_url: Text | None = None
    path: Text | None = None
    model: Text | None = None
    api_key_env: EnvName | None = None
    expect_served: Text | None = None
    extra_body: dict[str, Any] | None = None


class OpenAIProvider(Section):
    """An OpenAI-compatible provider. A fixed route uses it alone, a floating one together with its `pool`."""

    kind: Literal["openai"]
    name: Name
    base_url: Text
    path: Text | None = None
    model: Text
    api_key_env: EnvName
    expect_served: Text | None = None
    extra_body: dict[str, Any] | None = None
    pool: tuple[OpenAIPoolMember, ...] = ()
    workers: Any = None


class RehearsalPoolMember(Section):
    name: Name
    faults: RehearsalFaults


class RehearsalProvider(Section):
    """The simulated model, with its own short waits."""

    kind: Literal["rehearsal"]
    name: Name
    model: Text
    behaviour: RehearsalBehaviour
    faults: RehearsalFaults
    pool: tuple[RehearsalPoolMember, ...] = ()
    workers: Any = None
    timeout_s: Any = None
    max_wait_s: Any = None
    backoff_s: Any = None


class LocalProvider(Section):
    """A small real model on this machine, with the waits that its speed asks for."""

    kind: Literal["local"]
    name: Name
    model: Name
    gguf_sha256: Sha256
    n_ctx: int
    n_parallel: int
    threads: int
    cache_prompt: bool
    workers: Any = None
    timeout_s: Any = None
    max_wait_s: Any = None
    backoff_s: Any = None


class RouteConfig(Section):
    mode: Literal["fixed", "floating"]
    granularity: Literal["call", "attempt"]
    seed: int
    timeout_s: Seconds
    max_wait_s: Annotated[float, Field(ge=0, le=86_400)]
    retry: RetryPolicy
    proxy: Text | None = None
    ca_file: Text | None = None


class NoGuideConfig(Section):
    kind: Literal["none"]


class RulesGuideConfig(Section):
    """Rules given in place, or read from `file`, and which task gets which (see xspec.guides.selection)."""

    kind: Literal["rules"]
    rules: Annotated[tuple[Text, ...], Field(min_length=1)] | None = None
    file: Text | None = None
    selection: Literal["all", "own-task", "same-scenario", "exclude-own-scenario", "top-n"] = "all"
    n: Annotated[int, Field(ge=1, le=1000)] | None = None


class ArmLabel(Section):
    """An arm's name and the factor levels it promises; a spec that breaks the promise is refused."""

    name: Name
    guide: Literal["none", "rules"]
    route: Literal["fixed", "floating"]


class TrialEstimate(Section):
    """What one trial is assumed to take, and why, for a forecast before any is stored."""

    calls: Annotated[float, Field(gt=0)]
    prompt_tokens: Annotated[float, Field(gt=0)]
    completion_tokens: Annotated[float, Field(gt=0)]
    basis: Text


class Price(Section):
    """Of a million tokens, in whatever currency the user thinks in."""

    prompt: Annotated[float, Field(ge=0)] | None = None
    completion: Annotated[float, Field(ge=0)] | None = None


class ExperimentConfig(Section):
    """The root of `conf/`. Up to `k` it is what becomes identity, from `arm` on how it is carried out."""

    benchmark: BenchmarkConfig
    agent: Annotated[ToolLoopConfig | JsonChoiceConfig | CodeReactConfig, Field(discriminator="kind")]
    provider: Annotated[OpenAIProvider | RehearsalProvider | LocalProvider, Field(discriminator="kind")]
    route: RouteConfig
    sampling: SamplingSpec
    drift: DriftPolicy
    guide: Annotated[NoGuideConfig | RulesGuideConfig, Field(discriminator="kind")]
    k: Annotated[int, Field(ge=1, le=1000)]
    arm: ArmLabel | None = None
    store: Text
    workers: Annotated[int, Field(ge=1, le=1000)]
    max_invalid_share: Rate
    accept_lock_change: bool
    retry_invalid: bool
    confirm: bool
    trial_estimate: TrialEstimate | None = None
    price: Price


def validate_config(plain: Mapping[str, Any]) -> ExperimentConfig:
    """The validated configuration. Raises SpecError naming the first wrong field, what it is and what is right."""
    try:
        return ExperimentConfig.model_validate_json(json.dumps(plain))
    except ValidationError as error:
        raise SpecError(explain(error)) from None
    except TypeError as error:
        raise SpecError(f"the configuration holds something that is not plain data: {error}") from None


def explain(error: ValidationError) -> str:
    """One line for the first fault of a validation, with the count of the others."""
    faults = error.errors(include_url=False)
    first = faults[0]
    where = _path(first["loc"]) or "the configuration"
    if first["type"] == "extra_forbidden":
        line = f"unknown key {where}"
    else:
        got = first["input"]
        shown = (
            json.dumps(got) if isinstance(got, bool | int | float | str | None) else f"a {type(got).__name__}"
        )
        problem = first["msg"].removeprefix("Value error, ")
        line = f"{where}: {problem[0].lower()}{problem[1:]}"
        if first["type"] != "missing" and len(shown) <= 80:
            line += f" (got {shown})"
    return line + (f"; and {len(faults) - 1} more" if len(faults) > 1 else "")


def _path(loc: tuple[int | str, ...]) -> str:
    """Dotted path of a fault, without the tags that pydantic puts after the field of a tagged union."""
    tagged = loc[:1] in (("agent",), ("provider",), ("guide",)) and len(loc) > 1
    return ".".join(map(str, (*loc[:1], *loc[2:]) if tagged else loc))
