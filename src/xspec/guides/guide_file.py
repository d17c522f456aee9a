"""The guide file: JSON that holds rules and how they came to be. Made by `guide generate`, fit to be written by hand.

    {"xspec_guide": 1,
     "rules": [{"content": …, "trigger": …, "steps": […], "category": …, "rationale": …, "support": …,
                "evidence": …, "source_tasks": […]}, …],
     "provenance": {"generator": …, "generator_version": …, "method": …, …}}

Everything but `xspec_guide`, `rules` and their `content` may be left out.
"""

import json
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from xspec.errors import SpecError
from xspec.guides.guide import Guide
from xspec.guides.rule import Evidence, Rule
from xspec.spec.config import explain
from xspec.spec.sections import Section, Text

FORMAT = 1
MARK = "xspec_guide"
Count = Annotated[int, Field(ge=0)]


class RuleEntry(Section):
    """One rule; see xspec.guides.rule.Rule."""

    content: Text
    trigger: str = ""
    steps: tuple[Text, ...] = ()
    category: Text | None = None
    rationale: Text | None = None
    support: Annotated[int, Field(ge=1)] | None = None
    evidence: Evidence | None = None
    source_tasks: tuple[Text, ...] = ()

    def rule(self) -> Rule:
        return Rule(**{name: getattr(self, name) for name in type(self).model_fields})


class StepUncertainty(Section):
    """What the analyzer measured at one step of a trajectory: 0, always the same, to 1. Steps count from 0.

    `samples` is how many replies it could compare; `marked` says that it pointed the guideline writer at it.
    """

    run: Count
    task: Text
    step: Count
    uncertainty: Annotated[float, Field(ge=0, le=1)]
    samples: Count
    marked: bool


class Provenance(Section):
    """How a guide was generated. `temperature` is that of the samples, `sampled` says where they are from.

    `gateway_execution_ids` are the stored executions that carried its calls; calls, attempts and tokens are theirs.
    """

    generator: Text
    generator_version: Text | None = None
    method: Text | None = None
    samples: Count | None = None
    sampled: Text | None = None
    temperature: float | None = None
    model: Text | None = None
    benchmark: Text | None = None
    benchmark_version: Text | None = None
    spec_id: Text | None = None
    execution_id: Text | None = None
    gateway_execution_ids: tuple[Text, ...] | None = None
    runs: tuple[Count, ...] | None = None
    trajectories: Count | None = None
    failed_trajectories: Count | None = None
    max_rules: Count | None = None
    calls: Count | None = None
    attempts: Count | None = None
    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None
    simulated: bool | None = None
    uncertainty: tuple[StepUncertainty, ...] = ()


class GuideFile(Section):
    xspec_guide: Literal[1]
    rules: tuple[RuleEntry, ...]
    provenance: Provenance | None = None


def recognises(data: Any) -> bool:
    return isinstance(data, dict) and MARK in data


def read(data: Any, path: str) -> Guide:
    """Raises SpecError that names the field."""
    version = data[MARK]
    if isinstance(version, int) and version > FORMAT:
        raise SpecError(f"guide file {path} has format {version}; this xspec knows {FORMAT}: update xspec")
    try:
        file = GuideFile.model_validate_json(json.dumps(data))
    except ValidationError as error:
        raise SpecError(f"guide file {path}: {explain(error)}") from None
    provenance = None if file.provenance is None else file.provenance.model_dump(exclude_none=True)
    benchmark = None if file.provenance is None else file.provenance.benchmark
    return Guide(tuple(entry.rule() for entry in file.rules), "guide file", benchmark, provenance)


def guide_file_bytes(file: GuideFile) -> bytes:
    """The file's text, without what is absent."""
    plain = file.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    return json.dumps({MARK: FORMAT, **plain}, indent=1, ensure_ascii=False).encode() + b"\n"
