"""Code ReAct: reason, write one block of Python, read its output, until the world sees the task declared complete.

The first ```` ```python ```` block of a reply is run in the task's world and its output comes back as the next
message (Yao et al. 2023, with code for actions as in Wang et al. 2024). What follows that block was written without
having seen its output: it is neither run nor kept in the history.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from xspec.agents.offer import Offer
from xspec.agents.turns import Done, Ending, Episode, Turn, carry_out, take_turns, text_of
from xspec.errors import SpecError
from xspec.spec.agents import CodeReactAgent

VERSION = 1
"""Raised on purpose when the agent behaves differently; the golden transcript test fails if it does so unraised."""

# A block that is never closed reaches to the end of the reply.
_BLOCK = re.compile(r"```python[ \t]*\r?\n(.*?)(?:```|\Z)", re.DOTALL)
NO_BLOCK = "error: the reply holds no ```python block; nothing was run. Write one block a reply."


def offer(tools: Sequence[Mapping[str, Any]]) -> Offer:
    """Nothing: what there is to call, the agent finds out in the world. Raises SpecError if there are tools."""
    if tools:
        raise SpecError("agent code_react acts by code, and the benchmark's tasks offer tools instead")
    return Offer()


def first_block(text: str) -> tuple[str, str | None]:
    """The reply as far as it counts, and the code of its first block, None if it has none with anything in it."""
    found = _BLOCK.search(text)
    if found is None or not found[1].strip():
        return text, None
    return text[: found.end()], found[1].strip("\r\n")


async def play(agent: CodeReactAgent, episode: Episode) -> Ending:
    """Plays one trial. Raises what asking and the world raise; an error of the code goes back to the model instead."""

    async def respond(turn: Turn) -> Ending | None:
        text, code = first_block(text_of(turn.reply.message.get("content")))
        turn.add({"role": "assistant", "content": text})
        ending = turn.stopped() or turn.refused()
        if ending is not None:
            return ending
        if code is None:
            one, output = Done(None, True, NO_BLOCK), NO_BLOCK
        else:
            one = await carry_out({"code": code}, episode, agent.tool_timeout_s)
            output = _trimmed(one.content, agent.max_output_chars)
        turn.done.append(one)
        turn.add({"role": "user", "content": f"Output:\n{output}"})
        return turn.end("answered", "") if one.completed else None

    return await take_turns(agent.max_steps, episode, respond)


def _trimmed(output: str, limit: int) -> str:
    """The output as the model is shown it: at most `limit` characters of it, and a word on what was left out."""
    if len(output) <= limit:
        return output
    return f"{output[:limit]}\n[output trimmed: the first {limit} of {len(output)} characters are shown]"
