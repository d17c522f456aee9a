"""The JSON choice: for models without native tool calls. Each reply is one action, made as JSON under a schema.

A reply reads `{"action": NAME, "arguments": {…}}`, where NAME is a tool or `answer`, which ends the trial with its
`text`. Keys stand in the order in which canonical bytes have them, because a constrained model writes them in the
schema's order: it names the action before it fills in the arguments.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from xspec.agents.offer import Offer
from xspec.agents.turns import Done, Ending, Episode, Turn, call_tool, take_turns, text_of
from xspec.errors import SpecError
from xspec.route.conversation import ResponseFormat
from xspec.spec.agents import JsonChoiceAgent

VERSION = 1
"""Raised on purpose when the agent behaves differently; the golden transcript test fails if it does so unraised."""

ANSWER = "answer"
_ANSWER = {
    "type": "function",
    "function": {
        "name": ANSWER,
        "description": "Ends with a message to the user.",
        "parameters": {
            "type": "object",
            "properties": {"text": {"type": "string"}},
            "required": ["text"],
            "additionalProperties": False,
        },
    },
}


def offer(tools: Sequence[Mapping[str, Any]]) -> Offer:
    """The tools, and `answer`, as one JSON schema, and as a list in the system message: the schema alone would
    constrain a model without telling it what the tools are for.

    Raises SpecError if a tool is called `answer` itself.
    """
    functions = [tool["function"] for tool in (*tools, _ANSWER)]
    if any(tool["function"]["name"] == ANSWER for tool in tools):
        raise SpecError(f"agent json_choice cannot offer a tool called {ANSWER!r}: that word ends a trial")
    schema = {"anyOf": [_choice(function) for function in functions]}
    lines = [
        f"- {function['name']}({_parameters(function)}): {function.get('description') or ''}".rstrip(": ")
        for function in functions
    ]
    return Offer(
        text="\n\n".join(("", "\n".join(("Actions:", *lines)))),
        response_format=ResponseFormat(
            {"type": "json_schema", "json_schema": {"name": "choice", "schema": schema}}
        ),
    )


async def play(agent: JsonChoiceAgent, episode: Episode) -> Ending:
    """Plays one trial. Raises what asking and the world raise; a tool's own error goes back to the model instead."""

    async def respond(turn: Turn) -> Ending | None:
        text = text_of(turn.reply.message.get("content"))
        turn.add({"role": "assistant", "content": text})
        ending = turn.stopped() or turn.refused()
        if ending is not None:
            return ending
        choice = _choice_of(text)
        answer = _answer_of(choice)
        if answer is not None:
            return turn.end("answered", answer)
        one = await _carry_out(choice, episode, agent.tool_timeout_s)
        turn.done.append(one)
        turn.add({"role": "user", "content": one.content})
        last = agent.max_calls is not None and len(episode.actions) >= agent.max_calls
        return turn.end("answered", one.content) if last else None

    return await take_turns(agent.max_steps, episode, respond)


def _choice_of(text: str) -> dict[str, Any] | None:
    """The reply as `{"action": text, "arguments": …}`; None if it is not one: then the schema was not honoured."""
    try:
        choice = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return choice if isinstance(choice, dict) and isinstance(choice.get("action"), str) else None


def _answer_of(choice: Mapping[str, Any] | None) -> str | None:
    if choice is None or choice["action"] != ANSWER:
        return None
    arguments = choice.get("arguments")
    return text_of(arguments.get("text") if isinstance(arguments, dict) else arguments)


async def _carry_out(
    choice: Mapping[str, Any] | None,
    episode: Episode,
    timeout_s: float,
) -> Done:
    if choice is None:
        told = 'error: the reply must be JSON like {"action": …, "arguments": {…}}; nothing was done'
        return Done(None, True, told)
    return await call_tool(choice["action"], choice.get("arguments"), episode, timeout_s)


def _choice(function: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            "action": {"const": function["name"]},
            "arguments": function.get("parameters") or {"type": "object"},
        },
        "required": ["action", "arguments"],
        "additionalProperties": False,
    }


def _parameters(function: Mapping[str, Any]) -> str:
    """The parameters in one line: each with its choices, else its type. Sorted, as the schema is sent."""
    properties = (function.get("parameters") or {}).get("properties") or {}
    return ", ".join(f"{name}: {_values(properties[name])}" for name in sorted(properties))


def _values(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return "|".join(map(str, schema["enum"]))
    return str(schema.get("type", "any"))
