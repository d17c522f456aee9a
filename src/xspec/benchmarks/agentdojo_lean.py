"""What makes AgentDojo quick to load, quick to judge and repeatable, without changing a verdict."""

import datetime
import importlib.util
import sys
from types import ModuleType, NoneType, SimpleNamespace
from typing import Any

CLOCK_START = datetime.datetime(2025, 1, 1)
"""Later than every time in the data, as the present is: some verdicts ask whether a change is newer."""

_CLOCK_STEP = datetime.timedelta(seconds=1)
_PLAIN = frozenset({str, int, float, bool, NoneType})


def leave_out_unneeded_imports() -> None:
    """Import takes 0.35 s of CPU with this and 5.6 s without, and verdicts half the time.

    The `__init__` of agent_pipeline imports the SDKs of five model providers, and tool_execution needs one
    constant of one of them; neither has a part in tools or verdicts. deepdiff looks for array libraries, whose
    threads would forbid forking, and asks of every value whether it is one of theirs; none ever is.
    """
    package = importlib.util.find_spec("agentdojo")
    if package is None or package.submodule_search_locations is None:
        raise ModuleNotFoundError("agentdojo is not installed in the environment of this worker")
    pipeline = ModuleType("agentdojo.agent_pipeline")
    pipeline.__path__ = [f"{package.submodule_search_locations[0]}/agent_pipeline"]
    google = ModuleType("agentdojo.agent_pipeline.llms.google_llm")
    vars(google)["EMPTY_FUNCTION_NAME"] = "<empty-function>"
    modules: dict[str, ModuleType | None] = sys.modules  # type: ignore[assignment]
    modules |= {pipeline.__name__: pipeline, google.__name__: google}
    modules |= dict.fromkeys(("numpy", "pandas", "polars"))


class WorldClock:
    """Stands for `datetime.datetime` in the tools that stamp what they write: the same actions give the same
    observations in every run. It advances one second a reading."""

    def __init__(self) -> None:
        self._now = CLOCK_START

    def reset(self) -> None:
        self._now = CLOCK_START

    def now(self) -> datetime.datetime:
        self._now += _CLOCK_STEP
        return self._now


def install_clock() -> WorldClock:
    """The two tool modules use `datetime`, once imported, for nothing but `datetime.datetime.now()`."""
    from agentdojo.default_suites.v1.tools import (  # type: ignore[import-untyped]
        cloud_drive_client,
        email_client,
    )

    clock = WorldClock()
    for module in (cloud_drive_client, email_client):
        module.datetime = SimpleNamespace(datetime=clock)
    return clock


class SameContent:
    """A deepdiff operator: models with the same content have no difference to report and are not walked.

    Verdicts of workspace and travel diff whole environments, of which a trial changes one or two entries:
    3 ms instead of 45 ms. What is not plainly the same is left to deepdiff.
    """

    def match(self, level: Any) -> bool:
        return hasattr(level.t1, "__pydantic_fields_set__")

    def give_up_diffing(self, level: Any, diff_instance: Any) -> bool:
        return same_content(level.t1, level.t2)


def install_shortcut() -> None:
    """Gives the operator to the two partial DeepDiffs that all verdicts share."""
    from agentdojo.default_suites.v1.travel.task_suite import (  # type: ignore[import-untyped]
        TravelDeepDiff,
    )
    from agentdojo.default_suites.v1.workspace.task_suite import (  # type: ignore[import-untyped]
        WorkspaceDeepDiff,
    )

    for diff in (TravelDeepDiff, WorkspaceDeepDiff):
        diff.keywords["custom_operators"] = [SameContent()]


def same_content(one: Any, other: Any) -> bool:
    """Whether two values are of the same types and equal all the way down. False also means: cannot tell.

    Stricter than `==`, to which 1, 1.0 and True are one, and a text and an enum; deepdiff reports those.
    """
    if one is other:
        return True
    kind = type(one)
    if kind is not type(other):
        return False
    if kind in _PLAIN:
        return bool(one == other)
    if kind is dict:
        return len(one) == len(other) and all(
            key in other and same_content(value, other[key]) for key, value in one.items()
        )
    if kind is list:
        return len(one) == len(other) and all(map(same_content, one, other))
    if kind is datetime.datetime:
        return one.tzinfo is None and other.tzinfo is None and bool(one == other)
    if hasattr(one, "__pydantic_fields_set__"):
        return _same_model(one, other)
    return False


def _same_model(one: Any, other: Any) -> bool:
    hidden = (
        one.__pydantic_extra__,
        other.__pydantic_extra__,
        one.__pydantic_private__,
        other.__pydantic_private__,
    )
    return (
        not any(hidden)
        and one.__pydantic_fields_set__ == other.__pydantic_fields_set__
        and same_content(one.__dict__, other.__dict__)
    )
