"""What a hostile model, tool or provider can put into a conversation costs its trial at most, never the execution."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from xspec.agents.tool_loop import play
from xspec.agents.turns import Episode
from xspec.records.journal import Journal, read_journal
from xspec.records.rows import Place, Step
from xspec.route.conversation import Conversation
from xspec.route.faults import CallFailed
from xspec.route.reply import Reply
from xspec.spec.agents import ToolLoopAgent

AGENT = ToolLoopAgent(
    kind="tool_loop", version=1, max_steps=3, tool_timeout_s=5, prompt="sha256:" + "0" * 64, tools=None
)


def _reply(message: dict[str, Any]) -> Reply:
    return Reply(
        message=message,
        finish_reason=None,
        prompt_tokens=None,
        completion_tokens=None,
        attempts=1,
        waited_s=0,
        request_digest="sha256:" + "0" * 64,
        served_model=None,
        member="a",
    )


def _called(arguments: Any) -> dict[str, Any]:
    call = {"id": "t", "type": "function", "function": {"name": "pay", "arguments": arguments}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def _steps(tmp_path: Path, first: dict[str, Any], content: str = "paid") -> list[dict[str, Any]]:
    """The rows, as the journal gives them back, of a trial whose first reply is hostile."""
    replies = iter([_reply(first), _reply({"role": "assistant", "content": "done"})])
    conversation = Conversation("s", "i")

    class World:
        async def act(self, action: dict[str, Any], timeout_s: float) -> dict[str, Any]:
            return {"content": content, "error": False}

    async def ask(place: Place) -> Reply:
        conversation.body(b"{")
        return next(replies)

    path = tmp_path / "journal-1.jsonl"
    with Journal(path) as journal:

        def record(step: Step) -> None:
            journal.append(step)

        begin = Place(0, "lab.task_0", 0, 0)
        episode = Episode("i", conversation, ["pay"], World(), ask, begin, record)
        ending = asyncio.run(play(AGENT, episode))
    assert ending.how == "answered"
    return list(read_journal(path, ("step",)))


@pytest.mark.parametrize(
    "depth", [100, 240, 249, 250, 251, 252, 253, 254, 255, 500, 1000, 1024, 2000, 100_000]
)
def test_arguments_nested_deeply(tmp_path: Path, depth: int) -> None:
    """Carried out, or told to the agent as an error: a row that cannot be written would end the execution."""
    rows = _steps(tmp_path, _called('{"a":' + "[" * depth + "]" * depth + "}"))
    (action,) = rows[0]["actions"]
    assert action["error"] == (depth > 249)
    assert (action["action"] is None) == action["error"]


@pytest.mark.parametrize(
    "arguments", ['{"a": 1e999}', '{"a": 99999999999999999999999999}', '{"a": "\\ud800"}', [[[]]], 7]
)
def test_arguments_of_other_kinds(tmp_path: Path, arguments: Any) -> None:
    assert len(_steps(tmp_path, _called(arguments))) == 2


def test_a_tool_that_gives_half_a_character(tmp_path: Path) -> None:
    rows = _steps(tmp_path, _called("{}"), content="half \ud83d of it")
    assert rows[0]["added"][-1]["content"] == "half \ufffd of it"


def test_a_provider_that_asks_for_years_is_not_waited_for_by_the_others(lab: Any) -> None:
    """Calls that queue behind a pause wait for max_wait_s at most, as they would for a 429 of their own."""

    async def run() -> None:
        answers = lab.in_turn(lab.http(429, b"{}", retry_after="1000000000"))
        async with lab.routed(answers, options={"limit": 1}, route={"max_wait_s": 0.05}) as (server, route):
            with pytest.raises(CallFailed) as failed:
                await lab.call(route)
            assert failed.value.token == "rate_limited"
            async with asyncio.timeout(60):
                assert (await lab.call(route)).message["content"] == "done"
            assert lab.counts(server) == (2, 2, 2)

    asyncio.run(run())
