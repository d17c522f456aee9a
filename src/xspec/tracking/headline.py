"""An execution in a line, for a person who looks through many."""

from collections.abc import Iterator, Mapping
from typing import Any

from xspec.counted import counted

SIMULATED = "SIMULATED MODEL: these figures test the instrument, not an agent."


def label(execution: Mapping[str, Any], number: int) -> str:
    """`baseline xs-1a2b3c`; the second execution of a spec has ` (2)` after it."""
    what = "gateway" if execution["agent"] == "gateway" else f"guide={execution['guide']}"
    name = execution["arm"] or f"{what} route={execution['route']}"
    again = f" ({number})" if number > 1 else ""
    return f"{name} {execution['spec_id'][:9]}{again}"


def headline(execution: Mapping[str, Any], figures: Mapping[str, float]) -> str:
    """Markdown: the gap and both its terms first, then what must be known with them."""
    if execution["agent"] == "gateway":
        return "\n\n".join(_gateway(execution, figures))
    k = execution["k"]
    name = execution["arm"] or execution["spec_id"]
    if "gap_pp" in figures:
        text = (
            f"**{name}: Mean@{k} {execution['mean_at_k_pct']:.1f}, Pass^{k} {execution['pass_hat_k_pct']:.1f}, "
            f"gap {execution['gap_pp']:.1f} pp** over {figures['tasks_complete']:.0f} of "
            f"{counted(execution['tasks'], 'task')}."
        )
    else:
        text = f"**{name}: no gap, for no task has {k} valid trials.**"
    parts = [text]
    if execution["simulated"]:
        parts.append(f"**{SIMULATED}**")
    if figures["trials_missing"]:
        parts.append(f"Unfinished; missing: {counted(int(figures['trials_missing']), 'trial')}.")
    if figures["trials_invalid"]:
        also = (
            f"; with them counted as failed the gap is {figures['gap_pp_invalid_as_fail']:.1f} pp"
            if "gap_pp_invalid_as_fail" in figures
            else ""
        )
        parts.append(f"Invalid: {counted(int(figures['trials_invalid']), 'trial')}{also}.")
    parts.append(f"Execute it again: `python -m xspec reproduce {execution['spec_id']}`")
    return "\n\n".join(parts)


def _gateway(execution: Mapping[str, Any], figures: Mapping[str, float]) -> Iterator[str]:
    def some(name: str, noun: str) -> str:
        return counted(int(figures[name]), noun)

    tokens = some("total_tokens", "token") if "total_tokens" in figures else "tokens unknown"
    yield (
        f"**gateway: {some('calls', 'call')}, {figures['calls_answered']:.0f} of them answered**; "
        f"{some('attempts', 'attempt')}, {tokens}. Another program made the calls: there are no verdicts and no gap."
    )
    if execution["simulated"]:
        yield f"**{SIMULATED}**"
    if figures["harness_retries"]:
        yield f"Repeated by the harness's own retries: {some('harness_retries', 'call')}."
    if figures["replies_uncounted"]:
        yield f"Without a count of tokens: {counted(int(figures['replies_uncounted']), 'reply')}."
    if not execution["finished"]:
        yield "It was not closed in order: it was killed, or was still at work."
    yield f"Serve it again: `python -m xspec gateway {execution['spec_id']} -- COMMAND`"
