"""Which trial and step a request belongs to, what it adds to its conversation, and whether it came before.

A caller may name its trial (xspec.gateway.attribution). Otherwise requests are told apart by what they say: one that
takes up the messages of an earlier one belongs to the same conversation, and conversations are numbered in the order
in which they begin. They are no trials of the spec and are shown as such.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson

from xspec.records.rows import Place
from xspec.route.conversation import message_bytes, sendable

Trial = tuple[int, str]
By = Literal["path", "header", "order"]
Again = Literal["retry", "repeat"]

CONVERSATION = "conversation-"
"""How the tasks of calls that belong to no trial are named."""


@dataclass(slots=True)
class _Asked:
    """A body that came: its step, how often it came, whether the last time brought an answer, or any time did."""

    step: int
    calls: int = 0
    under_way: int = 0
    answered: bool = False
    recorded: bool = False


@dataclass(slots=True)
class _TrialSoFar:
    steps: int = 0
    asked: dict[str, _Asked] = field(default_factory=dict)
    known: set[bytes] = field(default_factory=set)
    """A digest for each beginning of a conversation whose messages stand in the journal."""


@dataclass(frozen=True, slots=True)
class Seen:
    """Where a request stands. `beginnings` has a digest for each beginning of its messages."""

    place: Place
    by: By
    again: Again | None
    digest: str
    messages: Sequence[Any]
    beginnings: Sequence[bytes]


class Conversations:
    """Keeps one digest a message, and nothing of what was said."""

    def __init__(self) -> None:
        self._trials: dict[Trial, _TrialSoFar] = {}
        self._last_at: dict[bytes, Trial] = {}
        self._waiting: dict[bytes, list[Trial]] = {}
        """Conversations whose last reply nothing has taken up yet: alike ones wait at the same beginning."""
        self._begun = 0

    def see(
        self, trial: Trial | None, by: By, digest: str, messages: Sequence[Any], *, is_retry: bool = False
    ) -> Seen:
        """Finds the place of a request. `digest` is of its body; `is_retry` says that the caller calls it one."""
        beginnings = _beginnings(messages)
        if trial is None:
            trial = self._conversation(digest, messages, beginnings, is_retry)
            self._last_at[_end(beginnings)] = trial
        so_far = self._trials.setdefault(trial, _TrialSoFar())
        asked = so_far.asked.get(digest)
        again: Again | None = "retry" if is_retry else None
        if asked is None:
            asked = so_far.asked[digest] = _Asked(so_far.steps)
            so_far.steps += 1
        elif again is None:
            again = "repeat" if asked.answered or asked.under_way else "retry"
        place = Place(*trial, 0, asked.step, asked.calls)
        asked.calls += 1
        asked.under_way += 1
        asked.answered = False
        return Seen(place, by, again, digest, messages, beginnings)

    def over(self, seen: Seen, reply: Mapping[str, Any] | None) -> list[Any] | None:
        """A request is over; `reply` is the message that answered it, None if none did.

        Returns the messages of its step, the reply last: those that no step of the trial has yet. None if there was
        no reply, or if the step was answered before, so that this is another sample of it.
        """
        trial = (seen.place.run, seen.place.task)
        so_far = self._trials[trial]
        asked = so_far.asked[seen.digest]
        asked.under_way -= 1
        if reply is None:
            return None
        asked.answered = True
        end = _after(_end(seen.beginnings), reply)
        if seen.by == "order":
            self._last_at[end] = trial
            if not asked.recorded:
                self._waiting.setdefault(end, []).append(trial)
        known, beginnings = so_far.known, seen.beginnings
        first_new = next((i + 1 for i in reversed(range(len(beginnings))) if beginnings[i] in known), 0)
        known.update(beginnings)
        known.add(end)
        if asked.recorded:
            return None
        asked.recorded = True
        return [*seen.messages[first_new:], reply]

    def _conversation(
        self, digest: str, messages: Sequence[Any], beginnings: Sequence[bytes], is_retry: bool
    ) -> Trial:
        """The conversation that a request goes on with, a new one if it begins one.

        Several may have said the same so far, above all reruns of one task: of those that wait for a next request
        the one answered last goes on (an earlier one may have been given up). The same opening again begins another
        conversation, unless the earlier one still has no answer.
        """
        last = self._last_at.get(_end(beginnings))
        if last is not None:
            asked = self._trials[last].asked
            again = asked.get(digest)
            if again is not None and (is_retry or not (again.answered or again.under_way)):
                return last
        replies = [
            n for n, m in enumerate(messages) if isinstance(m, Mapping) and m.get("role") == "assistant"
        ]
        if replies:
            waiting = self._waiting.get(beginnings[replies[-1]])
            if waiting:
                return waiting.pop()
        elif last is not None and not any(one.answered or one.under_way for one in asked.values()):
            return last
        known = beginnings if replies else beginnings[:-1]
        for beginning in reversed(known):
            if beginning in self._last_at:
                return self._last_at[beginning]
        self._begun += 1
        return 0, f"{CONVERSATION}{self._begun}"


def _beginnings(messages: Sequence[Any]) -> list[bytes]:
    """A digest of each beginning of `messages`: of the first, of the first two, and so on."""
    found: list[bytes] = []
    for message in messages:
        found.append(_after(_end(found), message))
    return found


def _end(beginnings: Sequence[bytes]) -> bytes:
    return beginnings[-1] if beginnings else b""


def _after(beginning: bytes, message: Any) -> bytes:
    state = hashlib.blake2b(beginning, digest_size=16)
    state.update(_essence(message))
    return state.digest()


def _essence(message: Any) -> bytes:
    """What makes two messages the same one. Programs send a model's message back in forms of their own."""
    if isinstance(message, Mapping) and message.get("role") == "assistant":
        calls = message.get("tool_calls")
        made = [
            [call.get("id"), call.get("function")] if isinstance(call, Mapping) else call
            for call in (calls if isinstance(calls, list) else ())
        ]
        message = ["assistant", message.get("content") or "", made]
    try:
        return orjson.dumps(message, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        return message_bytes({"message": sendable(message)})
