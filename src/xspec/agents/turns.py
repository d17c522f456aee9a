"""What every agent kind does alike: take turns, carry out actions, end, and leave a row for each turn."""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import orjson

from xspec.records.rows import Place, Step
from xspec.route.conversation import sendable
from xspec.route.faults import AgentFault

if TYPE_CHECKING:
    from xspec.route.conversation import Conversation
    from xspec.route.reply import Reply

Ask = Callable[[Place], Awaitable["Reply"]]


class World(Protocol):
    """What an agent needs of a benchmark's world."""

    async def act(self, action: dict[str, Any], timeout_s: float) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class Episode:
    """One trial as an agent plays it, from `begin` on.

    `ask` sends what the conversation holds by then; `record` takes a row for each turn. `actions` are those carried
    out so far, each there before it is sent to the world.
    """

    instruction: str
    conversation: "Conversation"
    tool_names: Sequence[str]
    world: World
    ask: Ask
    begin: Place
    record: Callable[[Step], None]
    actions: list[dict[str, Any]] = field(default_factory=list)


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
    """What came of one action. `action` is None if it never reached the world.

    `calls` are the API calls that a block of code made, where the world tells them; `completed` says that the
    world saw the agent declare completion.
    """

    action: dict[str, Any] | None
    error: bool
    content: str
    calls: Sequence[Mapping[str, Any]] = ()
    completed: bool = False


class Turn:
    """One reply and what comes of it: the messages it adds to the conversation, and what was done.

    `steps` is how many turns the trial has had, this one included.
    """

    def __init__(
        self, reply: "Reply", steps: int, conversation: "Conversation", added: list[dict[str, Any]]
    ) -> None:
        self.reply = reply
        self.steps = steps
        self.added = added
        self.done: list[Done] = []
        self._conversation = conversation

    def add(self, message: dict[str, Any]) -> None:
        """Appends a message to the conversation."""
        self._conversation.add(message)
        self.added.append(message)

    def end(self, how: str, answer: str | None = None) -> Ending:
        """The trial's end with this turn."""
        return Ending(how, answer, self.steps)

    def stopped(self) -> Ending | None:
        """The ending that the provider itself gave the reply, if it cut it short."""
        reason = self.reply.finish_reason
        return self.end(reason) if reason in ("length", "content_filter") else None

    def refused(self) -> Ending | None:
        """The ending of a model that declines the task."""
        return self.end("refused") if self.reply.message.get("refusal") else None


async def take_turns(
    max_steps: int, episode: Episode, respond: Callable[[Turn], Awaitable[Ending | None]]
) -> Ending:
    """Asks, and lets `respond` make of each reply what the agent kind makes of it, until that is an ending.

    Each turn is recorded, even one that `respond` breaks off with an error. Raises what `ask` and `respond` raise.
    """
    added: list[dict[str, Any]] = [{"role": "user", "content": episode.instruction}]
    begin = episode.begin
    for number in range(max_steps):
        at = time.time()
        place = Place(begin.run, begin.task, begin.take, number)
        try:
            reply = await episode.ask(place)
        except AgentFault as fault:
            return Ending(fault.token, None, number)
        turn = Turn(reply, number + 1, episode.conversation, added)
        try:
            ending = await respond(turn)
        finally:
            episode.record(_step_row(place, at, turn))
        if ending is not None:
            return ending
        added = []
    return Ending("step_limit", None, max_steps)


async def call_tool(name: str, arguments: Any, episode: Episode, timeout_s: float) -> Done:
    """One tool call. A wrong one is told, not raised."""
    if name not in episode.tool_names:
        return Done(None, True, f"error: there is no tool {name!r}; nothing was done")
    if not isinstance(arguments, dict):
        return Done(None, True, "error: the arguments must be a JSON object; nothing was done")
    action = {"name": name, "arguments": arguments}
    if not _fits_a_row(action):
        return Done(None, True, "error: the arguments are nested too deeply; nothing was done")
    return await carry_out(action, episode, timeout_s)


async def carry_out(action: dict[str, Any], episode: Episode, timeout_s: float) -> Done:
    """One action, put down before it is sent to the world."""
    episode.actions.append(action)
    observation = await episode.world.act(action, timeout_s)
    content = observation["content"]
    calls = observation.get("calls") or ()
    return Done(
        action,
        bool(observation["error"]),
        # A row is as strict about lone surrogates as the wire is.
        content if content.isascii() else sendable(content),
        calls if _fits_a_row(calls) else (),
        bool(observation.get("done")),
    )


def _fits_a_row(value: Any) -> bool:
    """Whether the value can be written as deep as it will stand in the row of its step."""
    try:
        orjson.dumps([[[value]]])
    except TypeError:
        return False
    return True


def _step_row(place: Place, at: float, turn: Turn) -> Step:
    reply = turn.reply
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
        actions=[_action_entry(one) for one in turn.done],
        added=turn.added,
    )


def _action_entry(done: Done) -> dict[str, Any]:
    entry = {"action": done.action, "error": done.error}
    return {**entry, "calls": list(done.calls)} if done.calls else entry


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
