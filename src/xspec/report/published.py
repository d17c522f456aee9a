"""The published figures that a reader will hold a gap against. They were not measured here, and say so."""

from dataclasses import dataclass
from typing import Any

MARK = "published, not measured"
SETTING = "AppWorld test_normal, 168 tasks, k = 5, ReAct, GPT-4.1, temperature 0"
SOURCE = "IBM Research, Closing the Consistency Gap, arXiv 2609.08832"


@dataclass(frozen=True, slots=True)
class Reference:
    """One published arm. `scope` says what its guide was made from: never compare gaps without it.

    `scope_label` is one of xspec.guides.scope, None without a guide.
    """

    label: str
    scope_label: str | None
    scope: str
    mean_at_k_pct: float
    pass_hat_k_pct: float
    gap_pp: float


REFERENCES = (
    Reference("no guide", None, "no guide", 77.4, 53.0, 24.4),
    Reference(
        "same-task guide", "same-task", "guide mined from the very task that is rerun", 81.0, 69.0, 12.0
    ),
    Reference(
        "similar-task guide",
        "similar-task",
        "guide mined from other tasks; read second-hand",
        79.5,
        66.0,
        13.5,
    ),
)


def reference_data(reference: Reference) -> dict[str, Any]:
    """For JSON."""
    return {
        "arm": reference.label,
        "scope": reference.scope,
        "scope_label": reference.scope_label,
        "setting": SETTING,
        "source": SOURCE,
        "mark": MARK,
        "mean_at_k_pct": reference.mean_at_k_pct,
        "pass_hat_k_pct": reference.pass_hat_k_pct,
        "gap_pp": reference.gap_pp,
    }
