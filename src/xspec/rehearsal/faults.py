"""Which fault an attempt meets: drawn anew for every attempt from the member's settings."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from xspec.rehearsal.code import cut_off
from xspec.rehearsal.draws import pick, uniform
from xspec.spec.canonical import canonical_bytes, digest_of
from xspec.spec.members import RehearsalFaults

Fault = Literal[
    "none", "too_many_requests", "server_error", "stall", "reset", "truncated_json", "other_model"
]
KINDS: tuple[Fault, ...] = (
    "too_many_requests",
    "server_error",
    "stall",
    "reset",
    "truncated_json",
    "other_model",
)
SERVER_ERRORS = (500, 502, 503)
PREMATURE_CLOSE = 0.25
"""Share of truncated replies that end before their Content-Length; the rest are whole HTTP with cut JSON."""


@dataclass(frozen=True, slots=True)
class Place:
    """One attempt of one request, as the server sees it."""

    execution: str
    run: int
    task: str
    step: int
    attempt: int


class FaultDice:
    """The faults of one member. Keeps nothing but what follows from its settings."""

    def __init__(self, model: str, faults: RehearsalFaults) -> None:
        self.model = model
        self.faults = faults

    @cached_property
    def digest(self) -> str:
        """Digest of the member's model name and fault settings: part of every fault draw."""
        plain = {"model": self.model, "faults": self.faults.model_dump(mode="python")}
        return digest_of(canonical_bytes(plain))

    @cached_property
    def _ranges(self) -> list[tuple[float, Fault]]:
        upper, ranges = 0.0, []
        for kind in KINDS:
            upper += getattr(self.faults, kind)
            ranges.append((upper, kind))
        return ranges

    def fault(self, place: Place) -> Fault:
        """The fault of this attempt. One draw over cumulative ranges, so that faults exclude one another."""
        drawn = self._uniform(place, "fault")
        for upper, kind in self._ranges:
            if drawn < upper:
                return kind
        return "none"

    def server_error(self, place: Place) -> int:
        """The status of a server error."""
        return SERVER_ERRORS[pick(len(SERVER_ERRORS), *self._parts(place), "status")]

    def closes_early(self, place: Place) -> bool:
        """Whether a truncated reply ends before its announced length."""
        return self._uniform(place, "close") < PREMATURE_CLOSE

    def cut(self, length: int, place: Place) -> int:
        """Where to cut a text of `length` characters (at least 2): at 1…length-1."""
        return 1 + pick(length - 1, *self._parts(place), "cut")

    def arguments(self, text: str, place: Place) -> str:
        """The arguments of a tool call as they arrive: `text`, or by the chance of it a text that is no JSON.

        A proper beginning of a JSON object never parses, as its last brace is missing.
        """
        return text[: self.cut(len(text), place)] if self._garbles(place) else text

    def code(self, text: str, place: Place) -> str:
        """A block of code as it arrives: `text`, or by the same chance a beginning of it that is no Python."""
        if len(text) < 2 or not self._garbles(place):
            return text
        return cut_off(text, self.cut(len(text), place))

    def _garbles(self, place: Place) -> bool:
        return self._uniform(place, "garble") < self.faults.garbled_arguments

    def _uniform(self, place: Place, purpose: str) -> float:
        return uniform(*self._parts(place), purpose)

    def _parts(self, place: Place) -> tuple[str | int, ...]:
        return (self.digest, place.execution, place.run, place.task, place.step, place.attempt)
