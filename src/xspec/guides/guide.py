"""What a guide's file says, whichever form it has."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from xspec.guides.rule import Rule


@dataclass(frozen=True, slots=True)
class Guide:
    """`form` names the reader. `benchmark` is the kind that `source_tasks` belong to, None where nobody says.

    `provenance` is how it was generated (see xspec.guides.guide_file), None if it does not say.
    """

    rules: tuple[Rule, ...]
    form: str
    benchmark: str | None = None
    provenance: Mapping[str, Any] | None = None
