"""The trajectories of a stored execution, as chat messages: what a guide is made from."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xspec.experiment.arm_execution import trial_inputs
from xspec.records.executions import ExecutionFolder
from xspec.records.rows import Trial
from xspec.spec.models import ExperimentSpec
from xspec.spec.store import Store

Message = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One trial's messages from the system text on; `tools` are its schemas, empty where it acts by code.

    `prompt_tokens` and `completion_tokens` are, for each step, those of its last attempt that was answered (0 if
    nobody said).
    """

    run: int
    task: str
    passed: bool
    messages: tuple[Message, ...]
    tools: tuple[Mapping[str, Any], ...]
    prompt_tokens: tuple[int, ...]
    completion_tokens: tuple[int, ...]

    @property
    def steps(self) -> list[int]:
        """The place in `messages` of each step's reply."""
        return [i for i, message in enumerate(self.messages) if message["role"] == "assistant"]

    @property
    def comparable(self) -> list[int]:
        """The steps whose reply says anything: tool calls, or a text that is not empty."""
        replies = [self.messages[place] for place in self.steps]
        return [step for step, reply in enumerate(replies) if reply.get("tool_calls") or _text(reply)]


def _text(message: Message) -> str:
    return str(message.get("content") or "").strip()


def trajectories(
    store: Store, spec: ExperimentSpec, folder: ExecutionFolder, runs: Collection[int]
) -> list[Trajectory]:
    """Of each trial of these runs that is pass or fail and has a reply, by run and then in the spec's task order."""
    trials = folder.progress().trials
    wanted = {
        (run, task, trial.take): trial
        for (run, task), trial in trials.items()
        if run in runs and trial.outcome != "invalid"
    }
    added: dict[tuple[int, str, int], list[Message]] = defaultdict(list)
    tokens: dict[tuple[int, str, int], dict[int, tuple[int, int]]] = defaultdict(dict)
    for row in folder.rows("step", "attempt"):
        key = (row["run"], row["task"], row["take"])
        if key not in wanted:
            continue
        if row["kind"] == "step":
            added[key] += row["added"]
        elif row["error"] is None:
            tokens[key][row["step"]] = (row["prompt_tokens"] or 0, row["completion_tokens"] or 0)
    manifest = store.json_blob(spec.benchmark.manifest)
    rows = {row["id"]: row for row in manifest["tasks"]}
    inputs = trial_inputs(store, spec)
    place = {task: i for i, task in enumerate(spec.benchmark.tasks)}
    found = []
    for key in sorted(added, key=lambda key: (key[0], place[key[1]])):
        given = inputs[key[1]]
        schemas = manifest["toolsets"][rows[key[1]]["toolset"]]
        offered = [tool for tool in schemas if tool["function"]["name"] in given.tool_names]
        found.append(_trajectory(wanted[key], given.system, added[key], offered, tokens[key]))
    return [one for one in found if one.steps]


def _trajectory(
    trial: Trial,
    system: str,
    added: Sequence[Message],
    tools: Sequence[Mapping[str, Any]],
    tokens: Mapping[int, tuple[int, int]],
) -> Trajectory:
    messages = ({"role": "system", "content": system}, *added)
    steps = sum(message["role"] == "assistant" for message in messages)
    counts = [tokens.get(step, (0, 0)) for step in range(steps)]
    return Trajectory(
        trial.run,
        trial.task,
        trial.outcome == "pass",
        messages,
        tuple(tools),
        tuple(prompt for prompt, _ in counts),
        tuple(completion for _, completion in counts),
    )
