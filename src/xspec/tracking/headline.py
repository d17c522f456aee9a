"""An execution in a line, for a person who looks through many."""

from collections.abc import Mapping
from typing import Any

SIMULATED = "SIMULATED MODEL: these figures test the instrument, not an agent."


def label(execution: Mapping[str, Any], number: int) -> str:
    """`baseline xs-1a2b3c`; the second execution of a spec has ` (2)` after it."""
    name = execution["arm"] or f"guide={execution['guide']} route={execution['route']}"
    again = f" ({number})" if number > 1 else ""
    return f"{name} {execution['spec_id'][:9]}{again}"


def headline(execution: Mapping[str, Any], figures: Mapping[str, float]) -> str:
    """Markdown: the gap and both its terms first, then what must be known with them."""
    k = execution["k"]
    name = execution["arm"] or execution["spec_id"]
    if "gap_pp" in figures:
        text = (
            f"**{name}: Mean@{k} {execution['mean_at_k_pct']:.1f}, Pass^{k} {execution['pass_hat_k_pct']:.1f}, "
            f"gap {execution['gap_pp']:.1f} pp** over {figures['tasks_complete']:.0f} of {execution['tasks']} tasks."
        )
    else:
        text = f"**{name}: no gap, for no task has {k} valid trials.**"
    parts = [text]
    if execution["simulated"]:
        parts.append(f"**{SIMULATED}**")
    if figures["trials_missing"]:
        parts.append(f"Unfinished: {figures['trials_missing']:.0f} trials are missing.")
    if figures["trials_invalid"]:
        also = (
            f"; with them counted as failed the gap is {figures['gap_pp_invalid_as_fail']:.1f} pp"
            if "gap_pp_invalid_as_fail" in figures
            else ""
        )
        parts.append(f"{figures['trials_invalid']:.0f} trials are invalid{also}.")
    parts.append(f"Execute it again: `python -m xspec reproduce {execution['spec_id']}`")
    return "\n\n".join(parts)
