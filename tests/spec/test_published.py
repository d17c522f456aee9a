"""The preset of a published experiment is that experiment, whatever the defaults become."""

import pytest

from xspec.agents import AGENTS
from xspec.spec.compose import compose
from xspec.spec.config import CodeReactConfig, ExperimentConfig, OpenAIProvider, validate_config


def composed(*overrides: str) -> ExperimentConfig:
    return validate_config(compose(["+published=appworld_gpt41", "provider=openai", *overrides]))


@pytest.mark.parametrize("arm", ["baseline", "guided"])
def test_appworld_gpt41(arm: str) -> None:
    config = composed(f"+arm={arm}")
    assert (config.benchmark.kind, config.benchmark.split, config.benchmark.limit) == (
        "appworld",
        "test_normal",
        None,
    )
    assert isinstance(config.agent, CodeReactConfig)
    assert config.agent.kind in AGENTS
    assert config.agent.max_steps == 50
    assert config.k == 5
    assert isinstance(config.provider, OpenAIProvider)
    assert config.provider.model == "gpt-4.1-2025-04-14"
    sent = config.sampling.model_dump(exclude_none=True)
    assert sent == {"temperature": 0, "seed": 100}, "neither top_p nor a limit of tokens"
    retry = config.route.retry
    waits = [
        min(retry.backoff_s * retry.backoff_base**n, retry.backoff_max_s) for n in range(retry.max_attempts)
    ]
    assert set(waits) == {15}
    assert config.confirm
    assert config.arm is not None
    assert config.arm.name == arm


def test_the_assumed_trial_is_what_its_basis_says() -> None:
    estimate = composed().trial_estimate
    assert estimate is not None
    steps, start, reply, output = 16, 1000, 150, 600
    assert estimate.calls == steps
    assert estimate.prompt_tokens == steps * start + sum(range(steps)) * (reply + output)
    assert estimate.completion_tokens == steps * reply
    for number in ("16 steps", "1,000 tokens", "150 tokens", "600 of output", "assumed, not measured"):
        assert number in estimate.basis
