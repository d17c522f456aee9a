"""The real runs of a task as samples of its steps: what k runs did where they stood at the very same place."""

import json
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from xspec.experiment.trajectories import Message, Trajectory

Reply = str | list[dict[str, Any]]
ANSWERED = "answered_in_text"
"""Stands for a tool's name where a run ended with text while others called a tool: that, too, is a decision."""


def shared_samples(trajectory: Trajectory, runs: Sequence[Trajectory]) -> dict[int, list[Reply]]:
    """Step → the replies of all runs of the task whose messages were the same up to it, its own among them.

    Steps that no other run shares are left out: one reply says nothing about how steady it is.
    """
    own = _beginnings(trajectory)
    others = [_beginnings(run) for run in runs if run.task == trajectory.task and run.run != trajectory.run]
    samples: dict[int, list[Reply]] = defaultdict(list)
    for step, (beginning, reply) in enumerate(own):
        replies = [reply, *(run[step][1] for run in others if step < len(run) and run[step][0] == beginning)]
        if len(replies) > 1:
            samples[step] = _of_one_kind(replies)
    return samples


def _beginnings(trajectory: Trajectory) -> list[tuple[str, Message]]:
    """For each step, what had been said before it (call ids left out: they differ by themselves) and its reply."""
    said = [_essence(message) for message in trajectory.messages]
    return [(json.dumps(said[:place]), trajectory.messages[place]) for place in trajectory.steps]


def _essence(message: Message) -> list[Any]:
    calls = [
        [call["function"]["name"], call["function"]["arguments"]] for call in message.get("tool_calls") or ()
    ]
    return [message["role"], message.get("content") or "", calls]


def _of_one_kind(replies: Sequence[Message]) -> list[Reply]:
    """All in the form of the first, the trajectory's own: texts, or tool calls with text as a tool of its own."""
    if not replies[0].get("tool_calls"):
        return [
            str(reply.get("content") or "") or json.dumps(reply.get("tool_calls") or "") for reply in replies
        ]
    return [
        list(reply["tool_calls"])
        if reply.get("tool_calls")
        else [{"function": {"name": ANSWERED, "arguments": str(reply.get("content") or "") or "(nothing)"}}]
        for reply in replies
    ]
