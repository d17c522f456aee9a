"""How ALTK-Evolve's Consistency Analyzer is asked: its method, its samples, and a configuration without downloads."""

from dataclasses import dataclass
from typing import Any, Literal

Method = Literal["accurate", "fast"]
PAPER_SAMPLES = 30
TEMPERATURE = 0.5
"""Of the samples: the library's own, and the paper's."""
MAX_TOKENS = 3000
"""Of one sample: the library's own."""
MAX_STEPS = 15
"""Steps of a trajectory that are sampled: the library's own."""
HIGH = 0.15
"""Uncertainty from which a step is marked, at most five a trajectory: the library's own."""


@dataclass(frozen=True, slots=True)
class Generation:
    """`samples` a step, for `accurate`; with `from_runs` the real runs are the samples, without further calls."""

    method: Method
    samples: int
    from_runs: bool = False

    @property
    def asks_for_samples(self) -> bool:
        return self.method == "accurate" and not self.from_runs


def analysis_config(samples: int, *, by_code: bool) -> dict[str, Any]:
    """The analyzer's configuration. Likeness is Jaccard's of API name and parameters, of words in a text.

    The library's default compares texts with an embedding model that it would download.
    """
    text = {"response_type": "text", "metric": "jaccard"}
    calls = {"response_type": "tool_calls", "fields": _fields("function_name", "function_arguments")}
    code = {"response_type": "react_aw", "fields": _fields("API_name", "API_params")}
    return {
        "name": "xspec",
        "aggregation": "mean",
        "max_samples": samples,
        "max_steps": MAX_STEPS,
        "temperature": TEMPERATURE,
        "high_uncertainty_threshold": HIGH,
        "skip_on_no_uncertainty": True,
        "agents": [
            {"name": "OpenAIAgent_content", **text},
            {"name": "OpenAIAgent_tool_calls", **calls},
            {"name": "AnyAgent_content", **(code if by_code else text)},
        ],
    }


def _fields(*names: str) -> list[dict[str, str]]:
    return [{"name": name, "metric": "jaccard"} for name in names]
