"""What every section of a spec is made of: its base class and the types of its fields."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from xspec.spec.canonical import DIGEST

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
