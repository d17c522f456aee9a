"""The frozen experiment: everything that can change a result, and nothing else.

Sections are tagged by `kind`. An absent optional field is left out of the canonical bytes, so a field added
later does not rename the specs that never used it.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from xspec.spec.agents import AgentSpec
from xspec.spec.canonical import canonical_bytes, short_id
from xspec.spec.members import Member
from xspec.spec.sampling import SamplingSpec
from xspec.spec.sections import Digest, Name, Seconds, Section, Text


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
