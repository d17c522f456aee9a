"""The sampling section: body fields that every request has, or has not."""

from typing import Annotated

from pydantic import Field

from xspec.spec.sections import Section, Text


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
