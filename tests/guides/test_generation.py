"""What stands around the analyzer: runs as samples of one another, rules merged and traced, price, the derived spec."""

import json
from pathlib import Path
from typing import Any

from xspec.experiment.gateway_spec import behind_gateway
from xspec.experiment.generate_guide import Analysed, sampling_spec
from xspec.experiment.generation_price import Price, price_of
from xspec.experiment.guide_making import merged_rules
from xspec.experiment.shared_samples import ANSWERED, shared_samples
from xspec.experiment.trajectories import Message, Trajectory
from xspec.guides.altk_method import Generation
from xspec.guides.rule import Rule
from xspec.guides.rules import guide_blob
from xspec.spec.models import ExperimentSpec
from xspec.spec.store import Store
from xspec.tracking.snapshot import config_snapshot


def call(name: str, identity: str, **arguments: Any) -> Message:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": identity, "type": "function", "function": function}],
    }


def trajectory(run: int, *replies: Message | str, task: str = "t", passed: bool = True) -> Trajectory:
    messages: list[Message] = [{"role": "system", "content": "S"}, {"role": "user", "content": "Pay."}]
    for i, reply in enumerate(replies):
        if isinstance(reply, str):
            messages.append({"role": "assistant", "content": reply})
        else:
            messages.append(reply)
            messages.append({"role": "tool", "tool_call_id": f"{run}.{i}", "content": "ok"})
    tokens = tuple(100 * (i + 1) for i in range(len(replies)))
    return Trajectory(run, task, passed, tuple(messages), (), tokens, tuple(10 for _ in replies))


def seen(samples: dict[int, list[Any]]) -> dict[int, list[Any]]:
    """Names of the tools, or texts."""
    return {
        step: [r if isinstance(r, str) else [one["function"]["name"] for one in r] for r in replies]
        for step, replies in samples.items()
    }


RUNS = [
    trajectory(0, call("look", "a"), call("pay", "b", amount=1), "done"),
    trajectory(1, call("look", "c"), call("ask", "d"), call("pay", "e", amount=1), "done"),
    trajectory(2, call("look", "f"), ""),
    trajectory(3, call("look", "g"), call("pay", "h", amount=1), "Done."),
    trajectory(0, call("other", "a"), task="u"),
]


def test_runs_are_samples_where_they_share_a_beginning() -> None:
    assert seen(shared_samples(RUNS[0], RUNS)) == {
        0: [["look"], ["look"], ["look"], ["look"]],  # call ids differ by themselves and don't count
        1: [["pay"], ["ask"], [ANSWERED], ["pay"]],
        2: ["done", "Done."],
    }
    assert seen(shared_samples(RUNS[1], RUNS))[1] == [["ask"], ["pay"], [ANSWERED], ["pay"]]
    assert 2 not in shared_samples(RUNS[1], RUNS)  # nobody else was there
    assert shared_samples(RUNS[4], RUNS) == {}


def guideline(content: str, **more: Any) -> dict[str, Any]:
    return {"content": content, "rationale": "r", "category": "strategy", "trigger": "", "support": 1, **more}


def analysed(task: str, uncertainty: float, *contents: str, run: int = 0) -> Analysed:
    step = {"step": 0, "uncertainty": uncertainty, "samples": 5, "marked": True}
    return Analysed(
        run, task, {"guidelines": [guideline(c) for c in contents], "steps": [step], "scorable": 1}
    )


def test_equal_rules_become_one_that_names_all_its_tasks() -> None:
    found = [
        analysed("a", 0.2, "Look.", "Ask."),
        analysed("b", 0.6, "Look. "),
        analysed("b", 0.1, "Look.", run=1),
    ]
    outcomes = {(0, "a"): True, (0, "b"): False, (1, "b"): True}
    rules = merged_rules(found, outcomes, None)
    assert [(r.content, r.source_tasks, r.support, r.evidence) for r in rules] == [
        ("Look.", ("a", "b"), 3, "both"),
        ("Ask.", ("a",), 1, "success"),
    ]


def test_of_too_many_rules_the_most_uncertain_trajectories_are_kept() -> None:
    found = [analysed("a", 0.2, "One."), analysed("b", 0.6, "Two."), analysed("c", 0.4, "Three.")]
    outcomes = {(0, task): True for task in "abc"}
    assert [rule.content for rule in merged_rules(found, outcomes, 2)] == ["Two.", "Three."]


def test_price_is_of_what_will_be_asked_for() -> None:
    asked = price_of(RUNS[:3], Generation("accurate", 5))
    assert (asked.trajectories, asked.sampled_steps, asked.samples, asked.writing_calls) == (3, 8, 40, 3)
    assert (
        asked.prompt_tokens == (600 + 1000 + 100) + 3 * 1_500 + 90
    )  # the empty reply of run 2 is not sampled
    assert (
        "40 samples of 8 steps (8 calls where the provider gives several choices at once, else 40)"
        in asked.text()
    )
    for free in (Generation("accurate", 5, from_runs=True), Generation("fast", 5)):
        assert price_of(RUNS, free).samples == 0


def test_samples_are_drawn_as_the_method_wants_on_the_frozen_route(spec: ExperimentSpec) -> None:
    derived = sampling_spec(spec)
    assert derived.route == spec.route
    assert derived.benchmark == spec.benchmark
    assert derived.sampling.model_dump(exclude_none=True) == {
        "temperature": 0.5,
        "top_p": 1,
        "max_tokens": 3000,
    }
    assert derived.id != behind_gateway(spec, "fill").id
    assert ExperimentSpec.model_validate_json(derived.canonical()) == derived


def test_a_model_with_another_name_for_the_limit_gets_that_one(plain: dict[str, Any]) -> None:
    plain["sampling"] = {"max_completion_tokens": 500}
    derived = sampling_spec(ExperimentSpec.model_validate_json(json.dumps(plain)))
    sent = derived.sampling.model_dump(exclude_none=True)
    assert sent == {"temperature": 0.5, "max_completion_tokens": 3000}


def test_rules_made_from_protected_tasks_are_left_out_of_artifacts(
    plain: dict[str, Any], tmp_path: Path
) -> None:
    store = Store(tmp_path / "store")
    plain["benchmark"]["kind"] = "appworld"
    plain["agent"]["prompt"] = store.put_blob(b"prompt")
    shown = {}
    for name, rule in (("own", Rule("Be careful.")), ("mined", Rule("Call this.", source_tasks=("a_1",)))):
        plain["guide"] = {"kind": "rules", "digest": store.put_blob(guide_blob([rule]))}
        spec = ExperimentSpec.model_validate_json(json.dumps(plain))
        shown[name] = config_snapshot(store, spec, protected=True)["guide"]["rules"]
        assert rule.content in str(config_snapshot(store, spec))
    assert shown["own"] == ["Be careful."]
    assert "Call this." not in str(shown["mined"])
    assert shown["mined"].startswith("left out")


def test_samples_that_are_asked_for_one_by_one_are_five_a_step() -> None:
    price = Price(2, 3, 90, 2, 100, 100)
    assert (
        "90 samples of 3 steps (3 calls where the provider gives several choices at once, else 15)"
        in price.text()
    )
