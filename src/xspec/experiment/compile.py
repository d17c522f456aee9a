"""From a validated configuration to a stored spec: everything the spec stands for is put into the store with it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from xspec.agents import AGENTS
from xspec.benchmarks.protocol import CODE_TOOLSET
from xspec.errors import SpecError
from xspec.experiment.compile_guide import guide_section, tasks_without_rules
from xspec.experiment.manifest import task_manifest
from xspec.experiment.members import members_of
from xspec.route.address import check_proxy
from xspec.route.drift import names_a_date
from xspec.route.routers import why_not_pinned
from xspec.spec.canonical import SCHEME
from xspec.spec.config import (
    BenchmarkConfig,
    ExperimentConfig,
    OpenAIProvider,
    Price,
    TrialEstimate,
    explain,
)
from xspec.spec.models import ExperimentSpec
from xspec.spec.store import Store
from xspec.spec.user_file import read_user_file

MAX_CA_BYTES = 10 * 2**20


@dataclass(frozen=True, slots=True)
class Compiled:
    """One arm, ready to be executed. Everything but the spec is how to carry it out."""

    spec: ExperimentSpec
    arm: str | None
    workers: int
    max_invalid_share: float
    command: tuple[str, ...] = ()
    accept_lock_change: bool = False
    retry_invalid: bool = False
    confirm: bool = False
    trial_estimate: TrialEstimate | None = None
    price: Price | None = None
    warnings: tuple[str, ...] = ()
    """What a person should know before the first call, one line each."""


async def compile_config(config: ExperimentConfig, store: Store, command: Sequence[str] = ()) -> Compiled:
    """Freezes the configuration: blobs and spec are in the store when this returns. Raises SpecError.

    `command` are the arguments that lead here, for a person who wants to go on later.
    """
    manifest_digest, manifest = await task_manifest(config.benchmark, store)
    tasks = chosen_tasks(config.benchmark, [row["id"] for row in manifest["tasks"]])
    guide, guide_warnings = await guide_section(config, store, manifest, tasks)
    plain: dict[str, Any] = {
        "scheme": SCHEME,
        "benchmark": {
            **config.benchmark.model_dump(include={"kind", "version", "split", "settings"}),
            "tasks": tasks,
            "manifest": manifest_digest,
        },
        "agent": _agent(config, store, manifest),
        "route": route_of(config, store),
        "sampling": config.sampling.model_dump(),
        "drift": config.drift.model_dump(),
        "guide": guide,
        "k": config.k,
    }
    try:
        spec = ExperimentSpec.model_validate_json(json.dumps(plain))
    except ValidationError as error:
        raise SpecError(explain(error)) from None
    _keep_promise(config, spec)
    store.put_spec(spec)
    return Compiled(
        spec,
        config.arm.name if config.arm else None,
        config.workers,
        config.max_invalid_share,
        tuple(command),
        config.accept_lock_change,
        config.retry_invalid,
        config.confirm,
        config.trial_estimate,
        config.price,
        (
            *undated_models(spec),
            *excluded_tasks(config.benchmark, spec),
            *guide_warnings,
            *tasks_without_rules(spec, store),
        ),
    )


def excluded_tasks(benchmark: BenchmarkConfig, spec: ExperimentSpec) -> list[str]:
    """A warning for each task that was named although the benchmark's list leaves it out."""
    reasons = {item.task: item.reason for item in benchmark.exclude}
    return [
        f"{task} is among the tasks, but its verdict measures nothing: {reasons[task]}"
        for task in spec.benchmark.tasks
        if task in reasons
    ]


def undated_models(spec: ExperimentSpec) -> list[str]:
    """A warning for each member whose model id may be pointed at another model without notice."""
    return [
        f"{member.model} (member {member.name}) is an undated model id: the provider may point it at another "
        "model at any time; better is a dated id, or provider.expect_served=… with the dated id it stands for today"
        for member in spec.route.members
        if member.kind == "openai"
        and not names_a_date(member.model)
        and not (member.expect_served and names_a_date(member.expect_served))
    ]


def chosen_tasks(benchmark: BenchmarkConfig, known: Sequence[str]) -> list[str]:
    """The task list of the spec, in the manifest's order: order is not identity."""
    if benchmark.tasks is None:
        excluded = {item.task for item in benchmark.exclude}
        tasks = [task for task in known if task not in excluded]
    else:
        _refuse_unknown(benchmark.tasks, known, "benchmark.tasks")
        if len(set(benchmark.tasks)) != len(benchmark.tasks):
            raise SpecError("benchmark.tasks: a task stands twice in the list")
        wanted = set(benchmark.tasks)
        tasks = [task for task in known if task in wanted]
    return tasks[: benchmark.limit]


def _refuse_unknown(names: Sequence[str], known: Sequence[str], where: str) -> None:
    import difflib

    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=3, cutoff=0.4)
            hint = f"did you mean {', '.join(near)}?" if near else f"tasks are named like {known[0]}"
            raise SpecError(f"{where}: unknown task {name!r}; {hint}")


def _agent(config: ExperimentConfig, store: Store, manifest: Mapping[str, Any]) -> dict[str, Any]:
    agent = config.agent
    takes_code = CODE_TOOLSET in manifest["toolsets"]
    if agent.kind == "code_react" and not takes_code:
        raise SpecError(
            f"agent code_react writes code, and tasks of {config.benchmark.kind} take tool calls; "
            "leave out agent=code_react"
        )
    if agent.kind != "code_react" and takes_code:
        raise SpecError(
            f"agent {agent.kind} makes tool calls, and tasks of {config.benchmark.kind} take code; "
            "add agent=code_react"
        )
    if agent.kind != "code_react" and agent.tools is not None:
        tools = {t["function"]["name"] for toolset in manifest["toolsets"].values() for t in toolset}
        for name in agent.tools:
            if name not in tools:
                raise SpecError(f"agent.tools: no toolset of {config.benchmark.kind} has a tool {name!r}")
    if agent.kind == "json_choice" and config.provider.kind == "rehearsal":
        raise SpecError(
            "agent json_choice needs a model that follows response_format, and the simulated one answers with "
            "tool calls; leave out agent=json_choice, or choose another provider"
        )
    return {
        **agent.model_dump(),
        "version": AGENTS[agent.kind].VERSION,
        "prompt": store.put_blob(agent.prompt.strip().encode()),
    }


def route_of(config: ExperimentConfig, store: Store) -> dict[str, Any]:
    """The route section of a spec. Raises SpecError."""
    route, provider = config.route, config.provider
    members = members_of(provider)
    floating = route.mode == "floating"
    if floating and len(members) < 2:
        remedy = (
            "can have none; leave out route=floating"
            if provider.kind == "local"
            else "has no pool; add one: provider.pool=[{name: second, base_url: …, api_key_env: …}] "
            "(what a member leaves out it shares)"
        )
        raise SpecError(f"route=floating needs more than one member, and provider {provider.name} {remedy}")
    if route.proxy is not None:
        check_proxy(route.proxy)
    if not floating and isinstance(provider, OpenAIProvider):
        unpinned = why_not_pinned(provider.base_url, provider.extra_body)
        if unpinned is not None:
            raise SpecError(f"provider {provider.name}: {unpinned}")
    return {
        "mode": route.mode,
        "members": members if floating else members[:1],
        "granularity": route.granularity if floating else None,
        "seed": route.seed if floating else None,
        "timeout_s": route.timeout_s,
        "max_wait_s": route.max_wait_s,
        "retry": route.retry.model_dump(),
        "proxy": route.proxy,
        "ca": _certificates(route.ca_file, store),
    }


def _certificates(path: str | None, store: Store) -> str | None:
    if path is None:
        return None
    data = read_user_file(path, MAX_CA_BYTES, "route.ca_file")
    if b"PRIVATE KEY" in data or b"BEGIN CERTIFICATE" not in data:
        raise SpecError(f"route.ca_file {path} must hold PEM certificates and nothing else")
    return store.put_blob(data)


def _keep_promise(config: ExperimentConfig, spec: ExperimentSpec) -> None:
    """A label cannot lie: an arm that promises a guide has one."""
    arm = config.arm
    if arm is None:
        return
    for factor, promised, got in (
        ("guide", arm.guide, spec.guide.kind),
        ("route", arm.route, spec.route.mode),
    ):
        if promised != got:
            raise SpecError(
                f"arm {arm.name} stands for {factor}={promised}, but an override makes it {got}; "
                f"leave out the arm or the override"
            )
