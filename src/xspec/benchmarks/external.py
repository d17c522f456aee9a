"""Tasks that another program brings along: xspec knows their names at most, and has no worlds or verdicts for them.

It stands in the specs of gateway executions (see xspec.gateway). It has no worker, so it is not one of BENCHMARKS.
"""

from collections.abc import Sequence
from typing import Any

EXTERNAL = "external"
ANY_TASK = "any"
"""The only task of a spec that names none: then calls may be attributed to a task of any name."""


def external_manifest(version: str, split: str, tasks: Sequence[str]) -> dict[str, Any]:
    """A manifest that has the names alone."""
    return {
        "benchmark": EXTERNAL,
        "version": version,
        "split": split,
        "package": {},
        "toolsets": {},
        "tasks": [{"id": task} for task in tasks],
    }
