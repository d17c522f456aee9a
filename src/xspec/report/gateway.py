"""What came through a gateway in one execution: no arm and no score, but every call, and how far the spec held it."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from xspec.counted import counted
from xspec.records.executions import ExecutionFolder
from xspec.report.sentence import some
from xspec.route.body import brief
from xspec.spec.store import Store

NOT_FROZEN = ("messages", "tools")
"""Fields that every harness is expected to set as it likes."""

NOT_SHOWN = "(not shown)"
"""What stands in the ledger for the value of a field that xspec does not know (xspec.route.foreign)."""

_WORD = re.compile(r"[A-Za-z0-9_.-]{1,60}")


@dataclass(slots=True)
class GatewayFigures:
    """Counts over all calls of one execution.

    `trials` counts the calls by trial that their callers named, `conversations` is the number of conversations that
    the others make up. `changed` counts, by field, the calls in which what was asked for contradicted the spec,
    `refused` those of them that were refused, and `filled` the calls that did not say and were not refused; `observed`
    those in which a field went out as it came. `retries` are the harness's own, `attempts` the HTTP tries of all
    calls.
    """

    execution_id: str
    spec_id: str
    enforce: str
    models: tuple[str, ...]
    simulated: bool
    calls: int = 0
    attempts: int = 0
    called: int = 0
    """Calls that came to an attempt."""
    unreturned: int = 0
    retries: int = 0
    repeats: int = 0
    streamed: int = 0
    drifted: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    replies: int = 0
    """Usable ones."""
    without_usage: int = 0
    """Replies that did not say how many tokens they took."""
    ended: Counter[str] = field(default_factory=Counter)
    trials: Counter[tuple[int, str]] = field(default_factory=Counter)
    conversations: set[str] = field(default_factory=set)
    changed: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """Field → how it was asked and sent → calls."""
    refused: Counter[str] = field(default_factory=Counter)
    filled: Counter[str] = field(default_factory=Counter)
    observed: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    closed: str | None = None
    """How it ended (see xspec.records.rows.Closed); None if it was killed, or is still at work."""

    @property
    def tokens_unknown(self) -> bool:
        """Whether there are replies, and none of them said how many tokens it took."""
        return 0 < self.replies == self.without_usage


def is_gateway(store: Store, folder: ExecutionFolder) -> bool:
    """Whether another program made the calls of an execution."""
    return store.spec(folder.info.spec_id).agent.kind == "gateway"


def gateway_figures(store: Store, folder: ExecutionFolder) -> GatewayFigures:
    """From the journal of the execution."""
    info = folder.info
    spec = store.spec(info.spec_id)
    members = spec.route.members
    found = GatewayFigures(
        info.execution_id,
        info.spec_id,
        spec.agent.enforce if spec.agent.kind == "gateway" else "fill",
        tuple(dict.fromkeys(member.model for member in members)),
        any(member.kind == "rehearsal" for member in members),
    )
    begun: set[tuple[Any, ...]] = set()
    for row in folder.rows("attempt_started", "attempt", "call", "closed"):
        if row["kind"] == "attempt_started":
            found.attempts += 1
            found.unreturned += 1
            begun.add((row["run"], row["task"], row["step"], row["call"]))
        elif row["kind"] == "attempt":
            found.unreturned -= 1
            _add_attempt(found, row)
        elif row["kind"] == "closed":
            found.closed = row["ended"]
        else:
            _add_call(found, row)
    found.called = len(begun)
    return found


def _add_attempt(found: GatewayFigures, row: Mapping[str, Any]) -> None:
    found.prompt_tokens += row["prompt_tokens"] or 0
    found.completion_tokens += row["completion_tokens"] or 0
    if row["error"] is not None:
        found.errors[row["error"]] += 1
        return
    found.replies += 1
    found.without_usage += row["prompt_tokens"] is None and row["completion_tokens"] is None


def _add_call(found: GatewayFigures, row: Mapping[str, Any]) -> None:
    found.calls += 1
    found.ended[row["ended"]] += 1
    found.retries += row["again"] == "retry"
    found.repeats += row["again"] == "repeat"
    found.streamed += row["streamed"]
    found.drifted += bool(row["drift"])
    found.observed.update(row["observed"])
    if row["by"] == "order":
        found.conversations.add(row["task"])
    else:
        found.trials[row["run"], row["task"]] += 1
    refused = row["ended"] == "refused"
    for change in row["changes"]:
        name = _field(change["field"])
        if change.get("asked") is None:
            found.filled[name] += "sent" in change and not refused
        else:
            found.changed[name][_way(change, refused)] += 1
            found.refused[name] += refused


def gateway_lines(found: GatewayFigures) -> Iterator[str]:
    """What a person should know of it, a sentence each."""
    yield (
        f"gateway {found.execution_id} for {found.spec_id} ({', '.join(found.models)}, enforce {found.enforce}): "
        f"{counted(found.calls, 'call')}, {_ends(found)}"
    )
    retries = counted(found.attempts - found.called, "retry")
    yield (
        f"{counted(found.attempts, 'attempt')} ({retries} of the spec's policy), "
        f"{_tokens(found)}"
        + (f"; faults: {_counts(found.errors)}" if found.errors else "")
        + (f"; {counted(found.unreturned, 'attempt')} never returned" if found.unreturned else "")
    )
    if found.retries or found.repeats:
        yield (
            f"{counted(found.retries, 'call')} repeated by the harness's own retries, beside the spec's policy; "
            f"{counted(found.repeats, 'call')} asked again after an answer"
        )
    if found.trials:
        yield f"{counted(found.trials.total(), 'call')} named their trial: {counted(len(found.trials), 'trial')}"
    if found.conversations:
        yield (
            f"{counted(found.calls - found.trials.total(), 'call')} named no trial: "
            f"{counted(len(found.conversations), 'conversation')}, told apart by their order"
        )
    for name, ways in found.changed.items():
        ((way, _),) = ways.most_common(1)
        yield (
            f"{name} contradicted the spec in {counted(ways.total(), 'call')}, {_done(found, name)}: {way}"
            + (f"; {counted(len(ways) - 1, 'other way')}" if len(ways) > 1 else "")
        )
    if found.filled.total():
        yield f"filled in where the harness asked for nothing: {_counts(+found.filled)}"
    if found.drifted:
        yield f"{counted(found.drifted, 'reply')} drifted from what was pinned, and was passed on"
    if found.closed is None:
        yield "it was not closed in order: it was killed, or is still at work"
    loose = [name for name in found.observed if name not in NOT_FROZEN]
    yield (
        "prompts and tools are the harness's: observed and recorded, not frozen"
        + (f"; likewise {some(loose, 'field')}" if loose else "")
    )


def gateway_data(found: GatewayFigures) -> dict[str, Any]:
    """The figures as plain data."""
    names = ("execution_id", "spec_id", "enforce", "simulated", "calls", "attempts", "unreturned", "streamed")
    tokens = ("prompt_tokens", "completion_tokens", "without_usage", "drifted")
    return {
        **{name: getattr(found, name) for name in (*names, *tokens)},
        **({"prompt_tokens": None, "completion_tokens": None} if found.tokens_unknown else {}),
        "closed": found.closed,
        "models": list(found.models),
        "harness_retries": found.retries,
        "repeats": found.repeats,
        "ended": dict(found.ended),
        "faults": dict(found.errors),
        "attributed_calls": found.trials.total(),
        "trials": len(found.trials),
        "conversations": len(found.conversations),
        "contradictions": {name: ways.total() for name, ways in found.changed.items()},
        "refused": dict(+found.refused),
        "filled": dict(+found.filled),
        "observed": dict(found.observed),
        "lines": list(gateway_lines(found)),
    }


def _field(name: str) -> str:
    """A field's name; one that is no plain word as JSON, for a harness may have put anything there."""
    return name if _WORD.fullmatch(name) else brief(json.dumps(name))


def _way(change: Mapping[str, Any], refused: bool) -> str:
    """How a field was asked for and sent, in JSON. A value that is nowhere repeated is not JSON, and not quoted."""
    asked = change["asked"]
    shown = NOT_SHOWN if asked == NOT_SHOWN else json.dumps(asked)
    if "sent" not in change:
        return f"asked {shown}, " + ("not in the spec" if refused else "not sent")
    return f"asked {shown}, {'frozen' if refused else 'sent'} {json.dumps(change['sent'])}"


def _tokens(found: GatewayFigures) -> str:
    if found.tokens_unknown:
        return f"tokens unknown: {counted(found.replies, 'reply')} without usage"
    without = f", {counted(found.without_usage, 'reply')} without usage" if found.without_usage else ""
    return f"{found.prompt_tokens:,} prompt and {found.completion_tokens:,} completion tokens{without}"


def _ends(found: GatewayFigures) -> str:
    return _counts(found.ended) if found.ended else "none came"


def _done(found: GatewayFigures, name: str) -> str:
    refused = found.refused[name]
    if refused and refused < found.changed[name].total():
        return f"{refused} of them refused, the others brought into line"
    return "refused" if refused else "brought into line"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(
        f"{n} {name}" for name, n in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    )
