"""The spec of a gateway execution: route, sampling and drift policy as frozen as ever, and no agent of xspec's own."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from xspec.benchmarks.external import ANY_TASK, EXTERNAL, external_manifest
from xspec.errors import SpecError
from xspec.experiment.compile import Compiled, chosen_tasks, route_of, undated_models
from xspec.experiment.manifest import task_manifest
from xspec.route.foreign import Enforce
from xspec.spec.canonical import SCHEME, canonical_bytes
from xspec.spec.config import BenchmarkConfig, ExperimentConfig, explain
from xspec.spec.models import ExperimentSpec
from xspec.spec.store import Store

VERSION = 1
"""Raised on purpose when the gateway sends other bytes for the same request than before."""


def behind_gateway(spec: ExperimentSpec, enforce: Enforce | None) -> ExperimentSpec:
    """The spec for a gateway to the same route with the same sampling, tasks and runs. A gateway's own spec is itself.

    What a guide says is for whoever writes the prompts, so there is none.
    """
    if spec.agent.kind == "gateway" and enforce in (None, spec.agent.enforce):
        return spec
    return _spec(
        {**spec.plain(), "agent": _agent(enforce or "fill"), "guide": {"kind": "none"}},
    )


async def compile_gateway(
    config: ExperimentConfig, store: Store, enforce: Enforce, command: Sequence[str] = ()
) -> Compiled:
    """Freezes the part of the configuration that a gateway has. Raises SpecError."""
    if config.guide.kind != "none":
        raise SpecError("a gateway adds no guide to the prompts of another program: leave out guide=…")
    benchmark = config.benchmark
    if benchmark.kind == EXTERNAL:
        tasks, manifest = _external(benchmark, store)
    else:
        manifest, content = await task_manifest(benchmark, store)
        tasks = chosen_tasks(benchmark, [row["id"] for row in content["tasks"]])
    spec = _spec(
        {
            "scheme": SCHEME,
            "benchmark": {
                **benchmark.model_dump(include={"kind", "version", "split", "settings"}),
                "tasks": tasks,
                "manifest": manifest,
            },
            "agent": _agent(enforce),
            "route": route_of(config, store),
            "sampling": config.sampling.model_dump(),
            "drift": config.drift.model_dump(),
            "guide": {"kind": "none"},
            "k": config.k,
        }
    )
    arm = config.arm.name if config.arm else None
    return replace(
        gateway_of(spec, store, command),
        arm=arm,
        workers=config.workers,
        warnings=tuple(undated_models(spec)),
    )


def gateway_of(spec: ExperimentSpec, store: Store, command: Sequence[str] = ()) -> Compiled:
    """A gateway's spec, stored and ready to be executed."""
    store.put_spec(spec)
    return Compiled(spec, None, workers=1, max_invalid_share=1.0, command=tuple(command))


def _agent(enforce: Enforce) -> dict[str, Any]:
    return {"kind": "gateway", "version": VERSION, "enforce": enforce}


def _external(benchmark: BenchmarkConfig, store: Store) -> tuple[list[str], str]:
    tasks = sorted(set(benchmark.tasks or (ANY_TASK,)))[: benchmark.limit]
    manifest = external_manifest(benchmark.version, benchmark.split, tasks)
    return tasks, store.put_blob(canonical_bytes(manifest))


def _spec(plain: dict[str, Any]) -> ExperimentSpec:
    try:
        return ExperimentSpec.model_validate_json(json.dumps(plain))
    except ValidationError as error:
        raise SpecError(explain(error)) from None
