"""What generating a guide will cost, from what the trajectories cost: told before the first call."""

from collections.abc import Sequence
from dataclasses import dataclass

from xspec.counted import counted
from xspec.experiment.trajectories import Trajectory
from xspec.guides.altk_method import MAX_STEPS, Generation

WRITING_PROMPT, WRITING_REPLY = 1_500, 800
"""Tokens of the library's own prompt, and of a set of guidelines: what they usually come to."""

SINGLE = 5
"""Samples of a step that the library asks for one by one, at most, where a provider ignores `n`."""


@dataclass(frozen=True, slots=True)
class Price:
    """`samples` replies are asked for in `sampled_steps` requests, or fewer one by one where a provider ignores `n`."""

    trajectories: int
    sampled_steps: int
    samples: int
    writing_calls: int
    prompt_tokens: int
    completion_tokens: int

    def text(self) -> str:
        """One line for a person who is about to pay."""
        parts = [counted(self.trajectories, "trajectory")]
        if self.samples:
            parts.append(
                f"{counted(self.samples, 'sample')} of {counted(self.sampled_steps, 'step')} "
                f"({counted(self.sampled_steps, 'call')} where the "
                f"provider gives several choices at once, else {min(self.samples, SINGLE * self.sampled_steps):,})"
            )
        parts.append(f"up to {counted(self.writing_calls, 'call')} to write rules")
        tokens = f"about {self.prompt_tokens:,} prompt and {self.completion_tokens:,} completion tokens"
        return f"{', '.join(parts)}; {tokens}"


def price_of(trajectories: Sequence[Trajectory], generation: Generation) -> Price:
    """An upper estimate with several choices at once: trajectories without an uncertain step need no writing call."""
    steps = prompt = completion = 0
    for one in trajectories:
        if generation.asks_for_samples:
            asked = one.comparable[:MAX_STEPS]
            steps += len(asked)
            prompt += sum(one.prompt_tokens[step] for step in asked)
            completion += generation.samples * sum(one.completion_tokens[step] for step in asked)
        prompt += WRITING_PROMPT + sum(one.completion_tokens)
        completion += WRITING_REPLY
    samples = steps * generation.samples if generation.asks_for_samples else 0
    return Price(len(trajectories), steps, samples, len(trajectories), prompt, completion)
