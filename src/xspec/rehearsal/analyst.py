"""The simulated model as a guide's generator meets it: asked for samples of one step, and asked to write guidelines.

Asked for `n` choices it redraws, for each of them, whether it flips, and nothing else: detours and giving up over an
error hang on the trial's own draws. So the choices differ at a task's unstable point alone, as the trials of the task
do. A flip among tool calls shows as another tool's call, since an empty answer is no decision to be compared.

Asked for guidelines it names the tools of the steps that are marked as uncertain; where none is marked it has to judge
by itself, and guesses one step.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from xspec.rehearsal.behaviour import Player, Turn
from xspec.rehearsal.draws import pick, uniform
from xspec.rehearsal.guide import Coverage, text_of
from xspec.rehearsal.replies import Completion
from xspec.rehearsal.scripts import READ_PREFIXES, Call, TaskScript, progress_of

MAX_CHOICES = 128
STUCK = "I do not know how to go on."
_ASKED = '"guidelines"'
_STEP = re.compile(r"^\W*Step \d+\b.*$", re.MULTILINE)
_MARKED = "UNCERTAINTY: "
_APIS = re.compile(r"\bapis\.\w+\.(\w+)\(")
_TOOLS = re.compile(r"^\s*(?:- |.*?: )?(\w+)\(", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Choices:
    """Several completions of one prompt, in one reply. The prompt's tokens count once."""

    completions: tuple[Completion, ...]

    def body(self) -> bytes:
        """The JSON of the reply."""
        plain = [orjson.loads(completion.body()) for completion in self.completions]
        merged = plain[0]
        merged["choices"] = [{**one["choices"][0], "index": i} for i, one in enumerate(plain)]
        written = sum(one["usage"]["completion_tokens"] for one in plain)
        prompt = merged["usage"]["prompt_tokens"]
        merged["usage"] = {
            "prompt_tokens": prompt,
            "completion_tokens": written,
            "total_tokens": prompt + written,
        }
        return orjson.dumps(merged)


def choices_asked(request: Mapping[str, Any]) -> int:
    """How many choices a request asks for: 1 unless it says more."""
    n = request.get("n")
    return min(n, MAX_CHOICES) if type(n) is int and n > 1 else 1


def sample_turns(
    player: Player,
    script: TaskScript,
    messages: Sequence[Any],
    place: tuple[str, int],
    coverage: Coverage,
    tools: Collection[str],
    n: int,
) -> list[Turn]:
    """`n` draws of the model's next turn. `place` is (execution, run)."""
    progress = progress_of(script, messages)
    point, step = progress.done, progress.step
    steady = (
        Turn("call", step, script.calls[point])
        if point < len(script.calls)
        else Turn("answer", step, text=script.answer)
    )
    difficulty = player.difficulty(script)
    if point != difficulty.point or point >= script.points:
        return [steady] * n
    covered = coverage.covers(script.names_at(point))
    chance = difficulty.flip_chance(covered, player.behaviour.guide_effect)
    flipped = _flipped(script, point, step, tools)
    draws = [uniform(player.digest, *place, script.task, point, "flip", "sample", i) for i in range(n)]
    return [flipped if draw < chance else steady for draw in draws]


def _flipped(script: TaskScript, point: int, step: int, tools: Collection[str]) -> Turn:
    """What a flip looks like to whoever compares replies. The same each time: a hopeless task is no unsteady one."""
    if script.give_up is not None:
        return Turn("give_up", step, script.give_up)
    due = script.names_at(point)
    others = [name for name in sorted(tools) if name not in due]
    reads = [name for name in others if name.startswith(READ_PREFIXES)] or others
    if not reads or not due:
        return Turn("give_up", step, text=STUCK)
    return Turn("give_up", step, Call.of(reads[pick(len(reads), script.task, point, "instead")], {}))


def asks_for_guidelines(messages: Sequence[Any]) -> str | None:
    """The prompt of a request for guidelines: one user message alone, that asks for them by name; None otherwise."""
    if len(messages) != 1 or not isinstance(messages[0], dict) or messages[0].get("role") != "user":
        return None
    text = text_of(messages[0])
    return text if _ASKED in text else None


def guidelines(prompt: str, task: str) -> str:
    """The guidelines, as JSON: one for each tool or API that the marked steps call."""
    steps = _steps(prompt)
    marked = [called for head, called in steps if _MARKED in head]
    if not marked and steps and _MARKED not in "".join(head for head, _ in steps):
        callable_steps = [called for _, called in steps if called]
        marked = [callable_steps[pick(len(callable_steps), task, "judged")]] if callable_steps else []
    names = dict.fromkeys(name for called in marked for name in called)
    return orjson.dumps({"guidelines": [_guideline(name) for name in names]}).decode()


def _steps(prompt: str) -> list[tuple[str, list[str]]]:
    """The line that opens each step, and the tools or APIs called in it."""
    heads = list(_STEP.finditer(prompt))
    if not heads:
        return []
    ends = [head.start() for head in heads[1:]] + [len(prompt.partition("# Your Analysis")[0])]
    found = []
    for head, end in zip(heads, ends, strict=True):
        body = prompt[head.end() : end]
        apis = _APIS.findall(body)
        found.append((head[0], apis or _TOOLS.findall(body)))
    return found


def _guideline(name: str) -> dict[str, Any]:
    return {
        "content": f"Where the work comes to {name}, call {name} and nothing else, with values read before.",
        "rationale": f"Runs part at {name}: some go on and some turn to something else.",
        "category": "strategy",
        "trigger": f"The next part of the request needs {name}.",
        "implementation_steps": [
            f"Take the arguments of {name} from what was read before.",
            f"Call {name} once.",
            "Read its result before the next step.",
        ],
    }
