"""The JSON choice: a schema made of the tools, and replies read as one tool call or the final answer."""

import asyncio
import hashlib
import json
from collections.abc import Sequence
from typing import Any

import orjson
import pytest

from xspec.agents import json_choice
from xspec.agents.turns import Ending, Episode
from xspec.errors import SpecError, WorkerDied
from xspec.records.rows import Place, Step
from xspec.route.conversation import Conversation
from xspec.route.faults import AgentFault
from xspec.route.reply import Reply
from xspec.spec.agents import JsonChoiceAgent

TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "pay",
            "description": "Pays an amount.",
            "parameters": {
                "type": "object",
                "properties": {
                    "to": {"type": "string", "enum": ["shop", "bank"]},
                    "amount": {"type": "number"},
                },
                "required": ["amount", "to"],
            },
        },
    },
    {"type": "function", "function": {"name": "look"}},
]
OFFER = json_choice.offer(TOOLS)


class World:
    def __init__(self, *, broken: bool) -> None:
        self.broken = broken

    async def act(self, action: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        if self.broken:
            raise WorkerDied("gone")
        if action["name"] == "pay" and not action["arguments"].get("amount"):
            return {"content": "error: pay what?", "error": True}
        return {"content": f"{action['name']}: done", "error": False}


class Played:
    """One trial with scripted replies: its ending, requests, steps and actions."""

    def __init__(
        self,
        replies: Sequence[Any],
        *,
        max_steps: int = 30,
        max_calls: int | None = None,
        broken: bool = False,
    ) -> None:
        self.requests: list[bytes] = []
        self.steps: list[Step] = []
        self.actions: list[dict[str, Any]] = []
        self._world = World(broken=broken)
        self._replies = iter(replies)
        self._conversation = Conversation(
            "Be careful." + OFFER.text, "Pay the bill.", OFFER.tools, response_format=OFFER.response_format
        )
        self._agent = JsonChoiceAgent(
            kind="json_choice",
            version=json_choice.VERSION,
            max_steps=max_steps,
            tool_timeout_s=7,
            prompt="sha256:" + "0" * 64,
            max_calls=max_calls,
        )

    def play(self) -> Ending:
        episode = Episode(
            "Pay the bill.",
            self._conversation,
            ["pay", "look"],
            self._world,
            self._ask,
            Place(3, "lab.task_0", 1, 0),
            self.steps.append,
            self.actions,
        )
        return asyncio.run(json_choice.play(self._agent, episode))

    async def _ask(self, place: Place) -> Reply:
        self.requests.append(self._conversation.body(b"{"))
        reply = next(self._replies)
        if isinstance(reply, Exception):
            raise reply
        assert isinstance(reply, Reply)
        return reply

    def messages(self) -> list[dict[str, Any]]:
        """The messages of the last request."""
        found: list[dict[str, Any]] = json.loads(self.requests[-1])["messages"]
        return found


def says(content: Any, finish: str = "stop", **more: Any) -> Reply:
    return Reply(
        message={"role": "assistant", "content": content, **more},
        finish_reason=finish,
        prompt_tokens=1,
        completion_tokens=1,
        attempts=1,
        waited_s=0,
        request_digest="sha256:request",
        served_model="m",
        member="main",
    )


def chooses(action: str, **arguments: Any) -> Reply:
    return says(json.dumps({"action": action, "arguments": arguments}, indent=2))


def test_the_schema_has_one_choice_a_tool_and_the_answer_last() -> None:
    assert OFFER.tools is None
    assert OFFER.response_format is not None
    wire = orjson.loads(OFFER.response_format.wire)
    assert wire["type"] == "json_schema"
    choices = wire["json_schema"]["schema"]["anyOf"]
    assert [choice["properties"]["action"]["const"] for choice in choices] == ["pay", "look", "answer"]
    assert choices[0]["properties"]["arguments"] == TOOLS[0]["function"]["parameters"]
    for choice in choices:
        assert list(choice["properties"]) == ["action", "arguments"], "the action is named first"
        assert choice["required"] == ["action", "arguments"]
        assert choice["additionalProperties"] is False


def test_the_system_text_tells_what_the_schema_cannot() -> None:
    assert OFFER.text == (
        "\n\nActions:\n- pay(amount: number, to: shop|bank): Pays an amount.\n- look()\n"
        "- answer(text: string): Ends with a message to the user."
    )


def test_a_tool_called_answer_is_refused() -> None:
    with pytest.raises(SpecError, match="'answer'"):
        json_choice.offer([{"type": "function", "function": {"name": "answer"}}])


def test_calls_then_the_answer() -> None:
    played = Played([chooses("look"), chooses("pay", amount=3, to="shop"), chooses("answer", text="Paid 3.")])
    assert played.play() == Ending("answered", "Paid 3.", 3)
    assert played.actions == [
        {"name": "look", "arguments": {}},
        {"name": "pay", "arguments": {"amount": 3, "to": "shop"}},
    ]
    assert played.messages()[-1] == {"role": "user", "content": "pay: done"}
    assert [[entry["error"] for entry in step.actions] for step in played.steps] == [[False], [False], []]
    added = [message for step in played.steps for message in step.added]
    assert added[:-1] == played.messages()[1:], "each message stands in one step"


def test_max_calls_ends_the_trial_with_the_observation() -> None:
    played = Played([chooses("look")], max_calls=1)
    assert played.play() == Ending("answered", "look: done", 1)
    assert len(played.steps) == 1


def test_what_never_reached_the_world_does_not_count_as_a_call() -> None:
    played = Played([chooses("steal"), chooses("look")], max_calls=1)
    assert played.play() == Ending("answered", "look: done", 2)


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (says("I would pay."), "must be JSON"),
        (says(None), "must be JSON"),
        (says("[1]"), "must be JSON"),
        (says('{"action": 3}'), "must be JSON"),
        (says('{"action": "pay", "arguments": [3]}'), "must be a JSON object"),
        (says('{"action": "pay"}'), "must be a JSON object"),
        (chooses("steal"), "no tool 'steal'"),
        (chooses("pay", amount=0), "pay what?"),
    ],
)
def test_a_wrong_reply_goes_back_to_the_model(reply: Reply, told: str) -> None:
    played = Played([reply, chooses("answer", text="sorry")])
    assert played.play() == Ending("answered", "sorry", 2)
    assert told in played.messages()[-1]["content"]
    assert played.messages()[-1]["role"] == "user"
    assert played.steps[0].actions[0]["error"] is True


@pytest.mark.parametrize(
    ("reply", "how"),
    [
        (says('{"action": "pay', "length"), "length"),
        (says("", "content_filter"), "content_filter"),
        (says(None, refusal="No."), "refused"),
    ],
)
def test_other_endings(reply: Reply, how: str) -> None:
    played = Played([chooses("look"), reply])
    assert played.play() == Ending(how, None, 2)
    assert len(played.steps) == 2


def test_step_limit_and_faults() -> None:
    assert Played([chooses("look")] * 3, max_steps=3).play() == Ending("step_limit", None, 3)
    fault = AgentFault("too long")
    fault.token = "context_overflow"
    assert Played([chooses("look"), fault]).play() == Ending("context_overflow", None, 1)


def test_a_broken_world_still_leaves_the_step_that_broke_it() -> None:
    played = Played([chooses("look")], broken=True)
    with pytest.raises(WorkerDied):
        played.play()
    assert played.actions == [{"name": "look", "arguments": {}}]
    assert len(played.steps) == 1


GOLDEN = {1: "8192a2f2"}
"""Digest of every request byte of the scripted trial, by VERSION. Where it differs, the agent behaves differently:
raise VERSION and add a line; never edit one, for old specs name old versions."""


def test_golden_transcript() -> None:
    played = Played(
        [
            chooses("look"),
            says("Let me think."),
            chooses("steal"),
            chooses("pay", amount=0),
            says('{"arguments":{"to":"bank","amount":3},"action":"pay"}'),
            chooses("answer", text="Paid 3."),
        ]
    )
    played.play()
    digest = hashlib.sha256(b"\n".join(played.requests)).hexdigest()[:8]
    assert GOLDEN.get(json_choice.VERSION) == digest, played.requests[-1].decode()
