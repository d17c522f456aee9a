"""The tool loop: ask, carry out the tool calls of the reply, tell the results, until a reply has none."""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import orjson

from xspec.records.rows import Place, Step
from xspec.route.faults import AgentFault
from xspec.spec.models import ToolLoopAgent

if TYPE_CHECKING:
    from xspec.route.conversation import Conversation
    from xspec.route.reply import Reply

VERSION = 1
"""Raised on purpose when the loop behaves differently; the golden transcript test fails if it does so unraised."""


class World(Protocol):
    """What the loop needs of a benchmark's world."""

    async def act(self, action: dict[str, Any], timeout_s: float) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class Ending:
    """How the agent ended: `answered`, `step_limit`, `length`, `context_overflow`, `refused` or `content_filter`.

    `answer` is the text it declared completion with; only `answered` has one.
    """

    how: str
    answer: str | None
    steps: int


def assistant_message(reply: Mapping[str, Any], step: int) -> dict[str, Any]:
    """The assistant message as it goes back into the history: the protocol's own fields and nothing else."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.get("content")}
    calls = reply.get("tool_calls")
    if isinstance(calls, list) and calls:
        message["tool_calls"] = [_tool_call(call, f"call_{step}_{i}") for i, call in enumerate(calls)]
    elif message["content"] is None:
        message["content"] = ""
    return message


def _tool_call(call: Any, spare_id: str) -> dict[str, Any]:
    """A tool call as it goes back. What is no call becomes one of a tool that there is not: the agent is told so."""
    given = call if isinstance(call, Mapping) else {}
    function = given.get("function")
    called = function if isinstance(function, Mapping) else {}
    return {
        "id": given.get("id") or spare_id,
        "type": "function",
        "function": {
            "name": str(called.get("name") or ""),
            "arguments": _text(called.get("arguments")),
        },
    }


async def play(
    agent: ToolLoopAgent,
    instruction: str,
    conversation: "Conversation",
    tool_names: Sequence[str],
    world: World,
    ask: Callable[[Place], Awaitable["Reply"]],
    begin: Place,
    record: Callable[[Step], None],
    actions: list[dict[str, Any]],
) -> Ending:
    """Plays one trial. Every action carried out is appended to `actions` before it is sent to the world.

    Raises what `ask` and the world raise; a tool's own error is not one of them, it goes back to the model.
    """
    allowed = frozenset(tool_names)
    added: list[dict[str, Any]] = [{"role": "user", "content": instruction}]
    for number in range(agent.max_steps):
        at = time.time()
        place = Place(begin.run, begin.task, begin.take, number)
        try:
            reply = await ask(place)
        except AgentFault as fault:
            return Ending(fault.token, None, number)
        message = assistant_message(reply.message, number)
        conversation.add(message)
        added.append(message)
        done: list[dict[str, Any]] = []
        ending = _ending(reply, message, number + 1)
        try:
            if ending is None:
                for call in message["tool_calls"]:
                    result = await _carry_out(call, allowed, world, agent.tool_timeout_s, actions)
                    done.append(result)
                    conversation.add(result["message"])
                    added.append(result["message"])
        finally:
            record(_step(place, at, reply, message, done, added))
        added = []
        if ending is not None:
            return ending
    return Ending("step_limit", None, agent.max_steps)


def _ending(reply: "Reply", message: Mapping[str, Any], steps: int) -> Ending | None:
    if reply.finish_reason == "length":
        return Ending("length", None, steps)
    if reply.finish_reason == "content_filter":
        return Ending("content_filter", None, steps)
    if message.get("tool_calls"):
        return None
    if reply.message.get("refusal"):
        return Ending("refused", None, steps)
    return Ending("answered", _text(message["content"]), steps)


async def _carry_out(
    call: Mapping[str, Any],
    allowed: frozenset[str],
    world: World,
    timeout_s: float,
    actions: list[dict[str, Any]],
) -> dict[str, Any]:
    """One tool call: its action (None if it never reached the world), whether it failed, and the message that tells."""
    name, text = call["function"]["name"], call["function"]["arguments"]
    action: dict[str, Any] | None = None
    try:
        arguments = orjson.loads(text or "{}")
    except orjson.JSONDecodeError as error:
        content, failed = f"error: the arguments are not valid JSON ({error}); nothing was done", True
    else:
        if name not in allowed:
            content, failed = f"error: there is no tool {name!r}; nothing was done", True
        elif not isinstance(arguments, dict):
            content, failed = "error: the arguments must be a JSON object; nothing was done", True
        else:
            action = {"name": name, "arguments": arguments}
            actions.append(action)
            observation = await world.act(action, timeout_s)
            content, failed = observation["content"], bool(observation["error"])
    message = {"role": "tool", "tool_call_id": call["id"], "content": content}
    return {"action": action, "error": failed, "message": message}


def _step(
    place: Place,
    at: float,
    reply: "Reply",
    message: dict[str, Any],
    done: Sequence[Mapping[str, Any]],
    added: list[dict[str, Any]],
) -> Step:
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
        actions=[{"action": item["action"], "error": item["error"]} for item in done],
        added=added,
    )


def _text(value: Any) -> str:
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
