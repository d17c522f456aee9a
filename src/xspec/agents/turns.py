"""What every agent kind does alike: carry out an action, end, and leave a row for each step."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import orjson

from xspec.records.rows import Place, Step
from xspec.route.conversation import sendable

if TYPE_CHECKING:
    from xspec.route.reply import Reply


class World(Protocol):
    """What an agent needs of a benchmark's world."""

    async def act(self, action: dict[str, Any], timeout_s: float) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class Ending:
    """How the agent ended: `answered`, `step_limit`, `length`, `context_overflow`, `refused` or `content_filter`.

    `answer` is the text it declared completion with; only `answered` has one.
    """

    how: str
    answer: str | None
    steps: int


@dataclass(frozen=True, slots=True)
class Done:
    """What came of one tool call. `action` is None if it never reached the world."""

    action: dict[str, Any] | None
    error: bool
    content: str


async def carry_out(
    name: str,
    arguments: Any,
    allowed: Collection[str],
    world: World,
    timeout_s: float,
    actions: list[dict[str, Any]],
) -> Done:
    """One tool call, appended to `actions` before it is sent to the world. A wrong one is told, not raised."""
    if name not in allowed:
        return Done(None, True, f"error: there is no tool {name!r}; nothing was done")
    if not isinstance(arguments, dict):
        return Done(None, True, "error: the arguments must be a JSON object; nothing was done")
    action = {"name": name, "arguments": arguments}
    try:
        orjson.dumps([[[action]]])  # as deep as it will stand in the row of its step
    except TypeError:
        return Done(None, True, "error: the arguments are nested too deeply; nothing was done")
    actions.append(action)
    observation = await world.act(action, timeout_s)
    content = observation["content"]
    # A row is as strict about lone surrogates as the wire is.
    return Done(action, bool(observation["error"]), content if content.isascii() else sendable(content))


def stopped(reply: "Reply", steps: int) -> Ending | None:
    """The ending that the provider itself gave the reply, if it cut it short."""
    if reply.finish_reason in ("length", "content_filter"):
        return Ending(reply.finish_reason, None, steps)
    return None


def step_row(
    place: Place,
    at: float,
    reply: "Reply",
    done: Sequence[Done],
    added: list[dict[str, Any]],
) -> Step:
    """The row of one turn: `added` are the messages it added, `done` its tool calls."""
    return Step(
        run=place.run,
        task=place.task,
        take=place.take,
        step=place.step,
        at=at,
        member=reply.member,
        request_digest=reply.request_digest,
        finish_reason=reply.finish_reason,
        refusal=reply.message.get("refusal") or None,
        actions=[{"action": one.action, "error": one.error} for one in done],
        added=added,
    )


def text_of(value: Any) -> str:
    """Text content of a message part; lists of text parts are joined, anything else is shown as JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(
        isinstance(part, dict) and isinstance(part.get("text"), str) for part in value
    ):
        return "".join(part["text"] for part in value)
    return orjson.dumps(value).decode()
