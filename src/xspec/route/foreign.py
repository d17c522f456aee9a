"""A request that another program wrote: what the spec fixes is put into it, the rest stays byte for byte.

Its prompts, tools and the form of the reply are observed, not frozen. Whatever else a body may hold, and neither the
spec nor OBSERVED knows, could reroute the call or change how the model samples, so it does not leave.
"""

import json
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import orjson

from xspec.errors import SpecDrift, XspecError
from xspec.route.body import ABSENT, brief, same
from xspec.spec.sampling import SamplingSpec

if TYPE_CHECKING:
    from xspec.route.lane import Lane

Enforce = Literal["fill", "refuse"]

OBSERVED = frozenset(
    (
        *("messages", "tools", "tool_choice", "functions", "function_call", "response_format"),
        *("n", "stream", "stream_options", "logprobs", "top_logprobs", "modalities", "audio", "prediction"),
        *("user", "metadata", "store", "prompt_cache_key", "safety_identifier"),
    )
)
"""Body fields that a harness may set as it likes, unless the spec's `extra_body` fixes one of them."""


SAMPLING = frozenset(
    (*SamplingSpec.model_fields, "top_k", "min_p", "logit_bias", "repetition_penalty", "verbosity")
)
"""Fields whose values are harmless to repeat in a message."""


class NotARequest(XspecError):
    """The body of a request that cannot be forwarded: no JSON object, a key twice, no messages, an odd `stream`."""


class Contradiction(XspecError):
    """A request asks for something other than the spec, and the spec says that such a one is refused."""

    def __init__(self, change: "Change") -> None:
        right = (
            "leave it out" if change.sent is ABSENT else f"it has to be {_json(change.sent)}, or be left out"
        )
        super().__init__(
            f"{change.field} is {_json(change.asked)}, which contradicts the frozen spec: {right}"
            if change.shown
            else f"{change.field} is no field of the frozen spec: leave it out"
        )
        self.change = change


@dataclass(frozen=True, slots=True)
class Change:
    """One field that was asked for otherwise than it was sent. ABSENT: it was not in the body.

    `shown` is false for a field that xspec does not know: its value may be a key, so it is nowhere repeated.
    """

    field: str
    asked: Any
    sent: Any
    shown: bool = True

    @property
    def contradicts(self) -> bool:
        """Whether the harness asked for something else, rather than for nothing: null is nothing, too."""
        return self.asked is not ABSENT and self.asked is not None


@dataclass(frozen=True, slots=True)
class Observed:
    """Stands where a trial's Pins would: the request's texts and tools are whatever its writer made them."""


OBSERVED_PINS = Observed()


class ForeignBody:
    """One request as it came. Raises NotARequest if it is none that could be forwarded.

    `models` are the models of the route's members: which one is sent depends on the attempt, so that a harness
    that names any of them contradicts nothing. `changes` are those of the last attempt.
    """

    def __init__(self, raw: bytes, enforce: Enforce = "fill", models: Collection[str] = ()) -> None:
        self.raw = raw
        self.fields, self._plain = read_foreign(raw)
        self._enforce = enforce
        self._models = models
        self.changes: list[Change] = []

    def wire(self, lane: "Lane") -> bytes:
        """The body for an attempt by this lane. Raises Contradiction where such a request is refused."""
        self.changes = self._compare(lane.fixed)
        if self._enforce == "refuse":
            for change in self.changes:
                if change.contradicts and not (change.field == "model" and change.asked in self._models):
                    raise Contradiction(change)
        put = {change.field: lane.fixed[change.field] for change in self.changes if change.sent is not ABSENT}
        drop = {change.field for change in self.changes if change.sent is ABSENT}
        return _spliced(self.raw, self.fields, put, drop, plain=self._plain)

    def _compare(self, fixed: Mapping[str, Any]) -> list[Change]:
        live = self.fields
        changes = []
        for name, frozen in fixed.items():
            if name not in live:
                changes.append(Change(name, ABSENT, frozen))
            elif not same(frozen, live[name]):
                changes.append(Change(name, brief(live[name]), frozen))
        changes += [
            _left_out(name, value)
            for name, value in live.items()
            if name not in fixed and name not in OBSERVED
        ]
        return changes


def _left_out(name: str, value: Any) -> Change:
    shown = name in SAMPLING or value is None
    return Change(name, brief(value) if shown else "(not shown)", ABSENT, shown)


def read_foreign(raw: bytes) -> tuple[dict[str, Any], bool]:
    """The body as data, and whether it is spelt as orjson would. Raises NotARequest.

    A key given twice, at any depth, is refused: two readers could take it for two requests. Text that has no UTF-8
    form (half of a surrogate pair, escaped) is let through as it stands. A number beyond a double is read as its text.
    """
    try:
        live = orjson.loads(raw)
        plain = orjson.dumps(live) == raw
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        plain = False
    if not plain:
        try:
            live = json.loads(
                raw.decode(), object_pairs_hook=_once, parse_float=_number, parse_constant=_no_constant
            )
        except (ValueError, RecursionError) as error:
            why = "nested too deeply" if isinstance(error, RecursionError) else _one_line(error)
            raise NotARequest(f"the body is not JSON that can be forwarded: {why}") from None
    if not isinstance(live, dict):
        raise NotARequest("the body is JSON, but no object")
    if not isinstance(live.get("messages"), list) or not live["messages"]:
        raise NotARequest("messages is missing, empty or no list")
    if not isinstance(live.get("stream"), bool | None):
        raise NotARequest("stream is neither true nor false")
    return live, plain


def check_foreign(body: bytes, fixed: Mapping[str, Any]) -> None:
    """Raise SpecDrift unless the body carries what the spec fixes, and nothing that it forbids or nobody knows."""
    try:
        live, _ = read_foreign(body)
    except NotARequest as error:
        raise SpecDrift("body", "a request", str(error)) from None
    for name, frozen in fixed.items():
        if name not in live:
            raise SpecDrift(f"body.{name}", frozen, ABSENT)
        if not same(frozen, live[name]):
            raise SpecDrift(f"body.{name}", frozen, brief(live[name]))
    for name in live:
        if name not in fixed and name not in OBSERVED:
            raise SpecDrift(f"body.{brief(name)}", ABSENT, "present")


def _spliced(
    raw: bytes, live: Mapping[str, Any], put: Mapping[str, Any], drop: Collection[str], *, plain: bool
) -> bytes:
    """`raw` with some fields put in, replaced or left out; every other field keeps its bytes."""
    if not put and not drop:
        return raw
    if not drop and not (put.keys() & live.keys()):
        return raw.rstrip()[:-1] + b"," + orjson.dumps(put)[1:]
    if plain:
        return orjson.dumps({name: value for name, value in live.items() if name not in drop} | dict(put))
    text = raw.decode()
    kept = [
        f"{text[start:value]}{orjson.dumps(put[name]).decode()}" if name in put else text[start:end]
        for name, start, value, end in _members(text)
        if name not in drop
    ]
    new = [orjson.dumps({name: put[name]}).decode()[1:-1] for name in put if name not in live]
    return ("{" + ",".join((*kept, *new)) + "}").encode()


def _members(text: str) -> list[tuple[str, int, int, int]]:
    """(name, start, start of the value, end) of each member of the object that `text`, valid JSON, is."""
    decoder = json.JSONDecoder()
    found = []
    at = _past_space(text, text.index("{") + 1)
    while text[at] != "}":
        start = at
        name, at = decoder.raw_decode(text, at)
        at = _past_space(text, _past_space(text, at) + 1)  # the colon
        value = at
        _, at = decoder.raw_decode(text, at)
        found.append((name, start, value, at))
        at = _past_space(text, at)
        if text[at] == ",":
            at = _past_space(text, at + 1)
    return found


def _past_space(text: str, at: int) -> int:
    while text[at] in " \t\n\r":
        at += 1
    return at


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"key {twice[:60]!r} twice")
    return made


def _number(text: str) -> float | str:
    number = float(text)
    return number if math.isfinite(number) else text


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _json(value: Any) -> str:
    """As the harness wrote it: null rather than None."""
    return json.dumps(value)


def _one_line(error: ValueError) -> str:
    return "not UTF-8" if isinstance(error, UnicodeDecodeError) else " ".join(str(error).split())[:120]
