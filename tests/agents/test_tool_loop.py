"""The tool loop, with scripted replies and a scripted world."""

import asyncio
import hashlib
import json
from collections.abc import Sequence
from typing import Any

import pytest

from xspec.agents import tool_loop
from xspec.agents.turns import Ending, Episode
from xspec.errors import WorkerDied
from xspec.records.rows import Place, Step
from xspec.route.conversation import Conversation, Tools
from xspec.route.faults import ContextOverflow
from xspec.route.reply import Reply
from xspec.spec.agents import ToolLoopAgent

TOOLS = [
    {"type": "function", "function": {"name": name, "description": "", "parameters": {"type": "object"}}}
    for name in ("pay", "look")
]


class World:
    """Answers every action with its own text; `broken` breaks at the first."""

    def __init__(self, *, broken: bool = False) -> None:
        self.actions: list[dict[str, Any]] = []
        self.timeouts: list[float] = []
        self.broken = broken

    async def act(self, action: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        self.actions.append(action)
        self.timeouts.append(timeout_s)
        if self.broken:
            raise WorkerDied("gone")
        failed = action["arguments"].get("amount") == 0
        return {"content": f"did {json.dumps(action)}", "error": failed}


class Played:
    """One trial with scripted replies: its ending, requests, steps and actions."""

    def __init__(self, replies: Sequence[Any], *, max_steps: int = 30, broken: bool = False) -> None:
        self.requests: list[bytes] = []
        self.steps: list[Step] = []
        self.places: list[Place] = []
        self.actions: list[dict[str, Any]] = []
        self.world = World(broken=broken)
        self._replies = iter(replies)
        self._conversation = Conversation("Be careful.", "Pay the bill.", Tools(TOOLS))
        self._max_steps = max_steps

    def play(self) -> Ending:
        agent = ToolLoopAgent(
            kind="tool_loop",
            version=tool_loop.VERSION,
            max_steps=self._max_steps,
            tool_timeout_s=7,
            prompt="sha256:" + "0" * 64,
        )
        episode = Episode(
            "Pay the bill.",
            self._conversation,
            ["pay", "look"],
            self.world,
            self._ask,
            Place(3, "lab.task_0", 1, 0),
            self.steps.append,
            self.actions,
        )
        return asyncio.run(tool_loop.play(agent, episode))

    async def _ask(self, place: Place) -> Reply:
        self.places.append(place)
        self.requests.append(self._conversation.body(b"{"))
        reply = next(self._replies)
        if isinstance(reply, Exception):
            raise reply
        return reply

    def messages(self) -> list[dict[str, Any]]:
        """The messages of the last request."""
        found: list[dict[str, Any]] = json.loads(self.requests[-1])["messages"]
        return found


def reply(message: dict[str, Any], finish: str | None = "stop") -> Reply:
    return Reply(
        message=message,
        finish_reason=finish,
        prompt_tokens=1,
        completion_tokens=1,
        attempts=1,
        waited_s=0,
        request_digest="sha256:request",
        served_model="m",
        member="main",
    )


def says(content: Any, finish: str | None = "stop", **more: Any) -> Reply:
    return reply({"role": "assistant", "content": content, **more}, finish)


def calls(*tool_calls: Any, content: Any = None, finish: str = "tool_calls") -> Reply:
    return reply({"role": "assistant", "content": content, "tool_calls": list(tool_calls)}, finish)


def call(name: Any, arguments: Any, id: Any = "c1") -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def test_answer_ends_the_trial_with_its_text() -> None:
    played = Played([calls(call("pay", '{"amount": 3}')), says("Paid 3.")])
    assert played.play() == Ending("answered", "Paid 3.", 2)
    assert played.world.actions == [{"name": "pay", "arguments": {"amount": 3}}] == played.actions
    assert played.world.timeouts == [7]
    assert [(p.run, p.task, p.take, p.step, p.call) for p in played.places] == [
        (3, "lab.task_0", 1, 0, 0),
        (3, "lab.task_0", 1, 1, 0),
    ]
    assert [m["role"] for m in played.messages()] == ["system", "user", "assistant", "tool"]


@pytest.mark.parametrize(
    ("last", "how"),
    [
        (says("cut off in the mid", "length"), "length"),
        (calls(call("pay", '{"amount"'), finish="length"), "length"),
        (says("", "content_filter"), "content_filter"),
        (says(None, refusal="I can't help with that."), "refused"),
    ],
)
def test_endings_without_an_answer(last: Reply, how: str) -> None:
    played = Played([calls(call("look", "{}")), last])
    assert played.play() == Ending(how, None, 2)
    assert len(played.world.actions) == 1, "a reply that ends the trial acts no more"
    assert len(played.steps) == 2


def test_step_limit() -> None:
    played = Played([calls(call("look", "{}"))] * 9, max_steps=3)
    assert played.play() == Ending("step_limit", None, 3)
    assert len(played.requests) == 3


def test_context_overflow_is_the_agent_s_end() -> None:
    played = Played([calls(call("look", "{}")), ContextOverflow("too long")])
    assert played.play() == Ending("context_overflow", None, 1)


@pytest.mark.parametrize(
    ("tool_call", "said"),
    [
        (call("pay", '{"amount": '), "not valid JSON"),
        (call("pay", "[3]"), "must be a JSON object"),
        (call("pay", "null"), "must be a JSON object"),
        (call("steal", "{}"), "there is no tool 'steal'"),
        (call(None, None), "there is no tool ''"),
        ({"id": "c1"}, "there is no tool ''"),
        ({"id": "c1", "function": "pay"}, "there is no tool ''"),
        ("pay", "there is no tool ''"),
        (None, "there is no tool ''"),
    ],
)
def test_call_that_cannot_be_carried_out_goes_back_as_an_error(tool_call: Any, said: str) -> None:
    played = Played([calls(tool_call), says("done")])
    assert played.play().how == "answered"
    assert played.world.actions == []
    answer = played.messages()[-1]
    assert answer["role"] == "tool"
    assert said in answer["content"]
    assert played.steps[0].actions == [{"action": None, "error": True}]


@pytest.mark.parametrize("not_a_list", [{"a": 1}, "pay", 3, {}])
def test_tool_calls_that_are_no_list_are_none(not_a_list: Any) -> None:
    played = Played([reply({"role": "assistant", "content": "done", "tool_calls": not_a_list})])
    assert played.play() == Ending("answered", "done", 1)


def test_failed_tool_goes_back_and_the_trial_goes_on() -> None:
    played = Played([calls(call("pay", '{"amount": 0}')), says("It failed.")])
    assert played.play().answer == "It failed."
    assert played.steps[0].actions == [{"action": {"name": "pay", "arguments": {"amount": 0}}, "error": True}]


def test_missing_ids_are_made_up_and_answered_one_by_one() -> None:
    played = Played(
        [calls(call("look", "", None), call("look", "{}", ""), call("look", "{}", "x")), says("done")]
    )
    played.play()
    assistant, *answers = played.messages()[2:]
    ids = [item["id"] for item in assistant["tool_calls"]]
    assert ids == ["call_0_0", "call_0_1", "x"]
    assert [answer["tool_call_id"] for answer in answers] == ids


def test_only_the_protocol_s_own_fields_go_back() -> None:
    odd = {**call("look", {"deep": 1}), "index": 0}
    played = Played(
        [reply({"role": "assistant", "content": None, "tool_calls": [odd], "reasoning": "…"}), says("done")]
    )
    played.play()
    assistant = played.messages()[2]
    assert assistant == {
        "role": "assistant",
        "content": None,
        "tool_calls": [call("look", '{"deep":1}')],
    }


def test_content_parts_are_one_answer() -> None:
    played = Played([says([{"type": "text", "text": "Paid "}, {"type": "text", "text": "3."}])])
    assert played.play().answer == "Paid 3."


def test_empty_reply_is_an_empty_answer() -> None:
    assert Played([says(None)]).play() == Ending("answered", "", 1)


def test_each_message_stands_in_one_step() -> None:
    played = Played([calls(call("look", "{}")), calls(call("pay", '{"amount": 3}')), says("done")])
    played.play()
    added = [message for step in played.steps for message in step.added]
    assert added[:-1] == played.messages()[1:]
    assert added[-1]["content"] == "done"
    assert [step.step for step in played.steps] == [0, 1, 2]
    assert {(step.run, step.task, step.take) for step in played.steps} == {(3, "lab.task_0", 1)}


def test_broken_world_still_leaves_the_step_that_broke_it() -> None:
    played = Played([calls(call("pay", '{"amount": 3}'))], broken=True)
    with pytest.raises(WorkerDied):
        played.play()
    assert played.actions == [{"name": "pay", "arguments": {"amount": 3}}], "for the replay"
    assert len(played.steps) == 1


GOLDEN = {1: "1d930255"}
"""Digest of every request byte of the scripted trial, by VERSION. Where it differs, the agent behaves differently:
raise VERSION and add a line; never edit one, for old specs name old versions."""


def test_golden_transcript() -> None:
    played = Played(
        [
            calls(call("look", '{"at": "bills"}'), call("steal", "{}", None), content="Let me see."),
            calls(call("pay", '{"amount": ', "c3")),
            calls(call("pay", '{"amount": 0}', "c4"), content=[{"type": "text", "text": "Again."}]),
            reply(
                {
                    "role": "assistant",
                    "tool_calls": [{"function": {"name": "pay", "arguments": {"amount": 3}}}],
                }
            ),
            says("Paid 3."),
        ]
    )
    played.play()
    digest = hashlib.sha256(b"\n".join(played.requests)).hexdigest()[:8]
    assert GOLDEN.get(tool_loop.VERSION) == digest, played.requests[-1].decode()
