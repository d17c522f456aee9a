"""What compiling says or refuses about routes that would not measure one thing."""

from typing import Any

import pytest

ROUTER = ["provider.base_url=https://openrouter.ai/api/v1", "provider.model=openai/gpt-4.1-2025-04-14"]
PIN = "+provider.extra_body.provider={only: [deepinfra], allow_fallbacks: false, require_parameters: true}"


def settings(*overrides: str) -> list[str]:
    return ["provider=openai_compatible", "provider.api_key_env=LAB_KEY", *overrides]


def test_a_fixed_route_over_a_router_needs_a_pin(clinic: Any) -> None:
    code, out, err = clinic(*settings(*ROUTER))
    assert (code, out) == (2, [])
    assert "only: [SLUG], allow_fallbacks: false, require_parameters: true" in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize("overrides", [[PIN], ["route=floating", "provider.pool=[{name: b}]"]])
def test_a_pin_or_floating_on_purpose_will_do(clinic: Any, overrides: list[str]) -> None:
    code, out, err = clinic(*settings(*ROUTER, *overrides))
    assert (code, err) == (3, ""), "only the key is missing"
    assert "LAB_KEY is not set" in out[0]
