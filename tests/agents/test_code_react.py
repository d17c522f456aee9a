"""Code ReAct, with scripted replies and a scripted world."""

import asyncio
import hashlib
import json
from collections.abc import Sequence
from typing import Any

import pytest

from xspec.agents import code_react
from xspec.agents.turns import Ending, Episode
from xspec.errors import SpecError, WorkerDied
from xspec.records.rows import Place, Step
from xspec.route.conversation import Conversation
from xspec.route.faults import ContextOverflow
from xspec.route.reply import Reply
from xspec.spec.agents import CodeReactAgent

CALL = {"name": "bank.pay", "arguments": {"amount": 3}}
DEEP: Any = {}
for _ in range(300):
    DEEP = {"in": DEEP}


class World:
    """Says what a block is, and sees completion where the block says `finish`. `broken` breaks at the first."""

    def __init__(self, *, broken: bool = False) -> None:
        self.actions: list[dict[str, Any]] = []
        self.timeouts: list[float] = []
        self.broken = broken

    async def act(self, action: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        self.actions.append(action)
        self.timeouts.append(timeout_s)
        if self.broken:
            raise WorkerDied("gone")
        code = action["code"]
        if "long" in code:
            return {"content": "x" * 1000, "error": False}
        observation = {"content": f"ran {code!r}", "error": "fail" in code}
        if "pay" in code:
            observation["calls"] = [CALL]
        if "deep" in code:
            observation["calls"] = [{"name": "bank.pay", "arguments": DEEP}]
        return {**observation, "done": True} if "finish" in code else observation


class Played:
    """One trial with scripted replies: its ending, requests, steps and actions."""

    def __init__(self, replies: Sequence[Any], *, max_steps: int = 50, broken: bool = False) -> None:
        self.requests: list[bytes] = []
        self.steps: list[Step] = []
        self.actions: list[dict[str, Any]] = []
        self.world = World(broken=broken)
        self._replies = iter(replies)
        self._conversation = Conversation("Write code.", "Pay the bill.")
        self._max_steps = max_steps

    def play(self) -> Ending:
        agent = CodeReactAgent(
            kind="code_react",
            version=code_react.VERSION,
            max_steps=self._max_steps,
            tool_timeout_s=7,
            max_output_chars=60,
            prompt="sha256:" + "0" * 64,
        )
        episode = Episode(
            "Pay the bill.",
            self._conversation,
            [],
            self.world,
            self._ask,
            Place(3, "lab.task_0", 1, 0),
            self.steps.append,
            self.actions,
        )
        return asyncio.run(code_react.play(agent, episode))

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


def says(content: Any, finish: str | None = "stop", **more: Any) -> Reply:
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


def block(code: str, before: str = "", after: str = "") -> Reply:
    return says(f"{before}```python\n{code}\n```{after}")


def test_blocks_run_until_the_world_sees_completion() -> None:
    played = Played([block("pay(3)", "I pay."), block("finish()")])
    assert played.play() == Ending("answered", "", 2)
    assert played.world.actions == [{"code": "pay(3)"}, {"code": "finish()"}] == played.actions
    assert played.world.timeouts == [7, 7]
    assert [m["role"] for m in played.messages()] == ["system", "user", "assistant", "user"]
    assert played.messages()[-1]["content"] == "Output:\nran 'pay(3)'"
    assert played.steps[0].actions == [{"action": {"code": "pay(3)"}, "error": False, "calls": [CALL]}]
    assert played.steps[1].actions == [{"action": {"code": "finish()"}, "error": False}]


@pytest.mark.parametrize(
    ("text", "code", "kept"),
    [
        ("```python\na\n```", "a", None),
        (
            "So:\n```python\r\na\n\n  b\n```\n1\n```python\nc\n```",
            "a\n\n  b",
            "So:\n```python\r\na\n\n  b\n```",
        ),
        ("```python  \na\n", "a", None),
        ("```\na\n```\n```python\nb\n```", "b", None),
        ("Done, I think.", None, None),
        ("```python\n\n```", None, None),
        ("```py\na\n```", None, None),
        ("```bash\nls\n```", None, None),
        ("", None, None),
    ],
)
def test_the_first_python_block_counts(text: str, code: str | None, kept: str | None) -> None:
    assert code_react.first_block(text) == (text if kept is None else kept, code)


def test_what_was_written_before_the_output_came_is_not_kept() -> None:
    played = Played(
        [block("pay(3)", after="\nOutput:\nPaid 4.\n```python\nfinish()\n```"), block("finish()")]
    )
    played.play()
    assert played.messages()[2] == {"role": "assistant", "content": "```python\npay(3)\n```"}
    assert len(played.actions) == 2


def test_reply_without_a_block_is_told_so_and_is_a_step() -> None:
    played = Played([says("It is done."), says(None), block("finish()")], max_steps=3)
    assert played.play() == Ending("answered", "", 3)
    assert played.messages()[-1]["content"] == f"Output:\n{code_react.NO_BLOCK}"
    assert [step.actions for step in played.steps[:2]] == [[{"action": None, "error": True}]] * 2


def test_failed_code_goes_back_and_the_trial_goes_on() -> None:
    played = Played([block("fail()"), block("finish()")])
    assert played.play().how == "answered"
    assert played.steps[0].actions == [{"action": {"code": "fail()"}, "error": True}]


@pytest.mark.parametrize(
    ("last", "how"),
    [
        (says("```python\nfinish()", "length"), "length"),
        (says("", "content_filter"), "content_filter"),
        (says(None, refusal="I can't help with that."), "refused"),
    ],
)
def test_endings_without_completion(last: Reply, how: str) -> None:
    played = Played([block("pay(3)"), last])
    assert played.play() == Ending(how, None, 2)
    assert len(played.world.actions) == 1, "a reply that ends the trial acts no more"
    assert len(played.steps) == 2


def test_step_limit() -> None:
    played = Played([block("look()")] * 9, max_steps=3)
    assert played.play() == Ending("step_limit", None, 3)
    assert len(played.requests) == 3


def test_context_overflow_is_the_agent_s_end() -> None:
    played = Played([block("look()"), ContextOverflow("too long")])
    assert played.play() == Ending("context_overflow", None, 1)


def test_output_is_trimmed_to_the_spec_s_limit() -> None:
    played = Played([block("long()"), block("finish()")])
    played.play()
    said = played.messages()[-1]["content"]
    assert said == f"Output:\n{'x' * 60}\n[output trimmed: the first 60 of 1000 characters are shown]"


def test_calls_that_no_row_can_hold_are_left_out() -> None:
    played = Played([block("deep()"), block("finish()")])
    assert played.play().how == "answered"
    assert played.steps[0].actions == [{"action": {"code": "deep()"}, "error": False}]


def test_broken_world_still_leaves_the_step_that_broke_it() -> None:
    played = Played([block("pay(3)")], broken=True)
    with pytest.raises(WorkerDied):
        played.play()
    assert played.actions == [{"code": "pay(3)"}], "for the replay"
    assert len(played.steps) == 1


def test_no_tools_can_be_offered() -> None:
    offer = code_react.offer([])
    assert (offer.text, offer.tools, offer.response_format) == ("", None, None)
    with pytest.raises(SpecError, match="acts by code"):
        code_react.offer([{"type": "function", "function": {"name": "pay"}}])


GOLDEN = {1: "753dc6a7"}
"""Digest of every request byte of the scripted trial, by VERSION. Where it differs, the agent behaves differently:
raise VERSION and add a line; never edit one, for old specs name old versions."""


def test_golden_transcript() -> None:
    played = Played(
        [
            block("look()", "Let me see.\n", "\nOutput:\nnothing\n```python\npay(4)\n```"),
            says("Then it is done."),
            says([{"type": "text", "text": "Again.\n```python\n"}, {"type": "text", "text": "fail()"}]),
            block("long()"),
            block("pay(3)\nfinish()"),
        ]
    )
    played.play()
    digest = hashlib.sha256(b"\n".join(played.requests)).hexdigest()[:8]
    assert GOLDEN.get(code_react.VERSION) == digest, played.requests[-1].decode()
