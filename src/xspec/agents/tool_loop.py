"""The tool loop: ask, carry out the tool calls of the reply, tell the results, until a reply has none."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from xspec.agents.offer import Offer
from xspec.agents.turns import Done, Ending, Episode, Turn, call_tool, take_turns, text_of
from xspec.route.conversation import Tools
from xspec.spec.agents import ToolLoopAgent

VERSION = 1
"""Raised on purpose when the loop behaves differently; the golden transcript test fails if it does so unraised."""


def offer(tools: Sequence[Mapping[str, Any]]) -> Offer:
    """The tools go out as the protocol's own `tools`."""
    return Offer(tools=Tools(tools) if tools else None)


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
            "arguments": text_of(called.get("arguments")),
        },
    }


async def play(agent: ToolLoopAgent, episode: Episode) -> Ending:
    """Plays one trial. Raises what asking and the world raise; a tool's own error goes back to the model instead."""

    async def respond(turn: Turn) -> Ending | None:
        message = assistant_message(turn.reply.message, turn.steps - 1)
        turn.add(message)
        ending = _ending(turn, message)
        if ending is None:
            for call in message["tool_calls"]:
                one = await _carry_out(call, episode, agent.tool_timeout_s)
                turn.done.append(one)
                turn.add({"role": "tool", "tool_call_id": call["id"], "content": one.content})
        return ending

    return await take_turns(agent.max_steps, episode, respond)


def _ending(turn: Turn, message: Mapping[str, Any]) -> Ending | None:
    cut = turn.stopped()
    if cut is not None or message.get("tool_calls"):
        return cut
    return turn.refused() or turn.end("answered", text_of(message["content"]))


async def _carry_out(
    call: Mapping[str, Any],
    episode: Episode,
    timeout_s: float,
) -> Done:
    name, text = call["function"]["name"], call["function"]["arguments"]
    try:
        arguments = orjson.loads(text or "{}")
    except orjson.JSONDecodeError as error:
        return Done(None, True, f"error: the arguments are not valid JSON ({error}); nothing was done")
    return await call_tool(name, arguments, episode, timeout_s)
