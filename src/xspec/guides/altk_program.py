"""The program that runs in the environment `altk`: ALTK-Evolve's Consistency Analyzer on one trajectory at a time.

It imports nothing of xspec. Each line on stdin is a request, each line on stdout the answer to it:

    {"method": "accurate"|"fast", "trajectory": {"messages", "model", "trace_id", "tools"?},
     "config": …, "samples": {step: [reply, …]} | null, "sampling": {"url", "key"} | null, "writing": {"url", "key"}}
    → {"guidelines": [{…}, …], "steps": [{"step", "uncertainty", "samples", "marked"}, …], "scorable": n}
    or {"error": text}

`sampling` and `writing` say where its calls go: to the gateways of the two kinds of calls. Given `samples` are compared
instead of being asked for, and a step that has none is left out. Steps count from 0 over the assistant messages.
"""

import json
import os
import re
import sys
from typing import Any

_HEAD = re.compile(r"^Step (\d+) \[", re.MULTILINE)


def main() -> int:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever the libraries print is no answer
    for line in sys.stdin:
        try:
            answer = _carry_out(json.loads(line))
        except Exception as error:
            cause = f" ({error.__cause__})" if error.__cause__ is not None else ""
            answer = {"error": f"{type(error).__name__}: {error}{cause}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
    return 0


def _carry_out(request: dict[str, Any]) -> dict[str, Any]:
    from altk_evolve.config.guideline_runtime import GuidelineRuntime  # type: ignore[import-not-found]
    from altk_evolve.llm.guidelines.consistency_guidelines import (  # type: ignore[import-not-found]
        format_trajectory_data,
        generate_consistency_guidelines,
        generate_consistency_guidelines_fast,
        transform_trajectory_to_IR,
    )

    trajectory = request["trajectory"]
    options = GuidelineRuntime(
        guidelines_model=trajectory["model"],
        custom_llm_provider="openai",
        analysis_config=request["config"],
    )
    if request["method"] == "fast":
        _go_to(request["writing"])
        return _answer(generate_consistency_guidelines_fast(trajectory, options=options), [], set(), 0)
    steps = transform_trajectory_to_IR(trajectory)
    scorable = len(steps["steps"])
    steps["steps"] = _sampled(request, steps)
    if not steps["steps"]:
        return _answer([], [], set(), scorable)
    marked: set[int] = set()

    def render(messages: Any, scores: Any, **more: Any) -> str:
        text: str = format_trajectory_data(messages, scores, **more)
        marked.update(int(number) for number in _HEAD.findall(text))
        return text

    _go_to(request["writing"])
    results = generate_consistency_guidelines(
        trajectory, trajectory_ir=steps, trajectory_renderer=render, options=options
    )
    return _answer(results, steps["steps"], marked, scorable)


def _sampled(request: dict[str, Any], steps: dict[str, Any]) -> list[dict[str, Any]]:
    """The steps with their samples: those given, or those the model is asked for."""
    from altk_evolve.llm.guidelines.consistency_analyzer.resampling import (  # type: ignore[import-not-found]
        resample_trajectory,
    )

    given = request["samples"]
    if given is None:
        _go_to(request["sampling"])
        config = request["config"]
        steps = resample_trajectory(
            trajectory=steps,
            samples=config["max_samples"],
            model_name=request["trajectory"]["model"],
            temperature=config["temperature"],
            max_steps=config["max_steps"],
            custom_llm_provider="openai",
        )
        # One that was not sampled would be asked for now, by the call that only has to write.
        return [step for step in steps["steps"] if "sampling" in step]
    kept = []
    for step in steps["steps"]:
        replies = given.get(str(step["step_number"] - 1))
        if replies:
            kept.append({**step, "sampling": {"num_samples": len(replies), "raw_samples": replies}})
    return kept


def _go_to(place: dict[str, str]) -> None:
    for name in ("OPENAI_BASE_URL", "OPENAI_API_BASE"):
        os.environ[name] = place["url"]
    os.environ["OPENAI_API_KEY"] = place["key"]


def _answer(
    results: list[Any], steps: list[dict[str, Any]], marked: set[int], scorable: int
) -> dict[str, Any]:
    scored = [
        {
            "step": step["step_number"] - 1,
            "uncertainty": round(1 - step["consistency"]["step_consistency"], 4),
            "samples": step["sampling"]["num_samples"],
            "marked": step["step_number"] in marked,
        }
        for step in steps
        if step.get("consistency", {}).get("step_consistency", -1) != -1
    ]
    written = [guideline.model_dump() for result in results for guideline in result.guidelines]
    return {"guidelines": written, "steps": scored, "scorable": scorable}


if __name__ == "__main__":
    sys.exit(main())
