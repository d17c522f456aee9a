"""From stored trajectories to a guide, by ALTK-Evolve: every call of its goes through a gateway of the frozen route.

Samples are asked for under the source spec's route with the sampling that the method wants (temperature 0.5, no seed,
which would make them alike); rules are written under the source spec's own sampling. Each is a gateway execution of its
own, so both are pinned, retried and recorded like any.
"""

import asyncio
import os
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

from xspec.benchmarks import environments
from xspec.benchmarks.worker_variables import worker_environment
from xspec.experiment.gateway_execution import OpenGateway, open_gateway
from xspec.experiment.gateway_spec import behind_gateway, gateway_of
from xspec.experiment.shared_samples import shared_samples
from xspec.experiment.trajectories import Trajectory
from xspec.guides.altk_method import MAX_TOKENS, TEMPERATURE, Generation, analysis_config
from xspec.guides.altk_process import AltkProcess
from xspec.spec.models import ExperimentSpec
from xspec.spec.store import Store

ENVIRONMENT = "altk"
PROCESSES = 2
"""Each holds 220 MB and takes seconds to start; what a trajectory waits for is the model."""


@dataclass(frozen=True, slots=True)
class Analysed:
    """What came of one trajectory: the program's answer (see xspec.guides.altk_program)."""

    run: int
    task: str
    answer: dict[str, Any]

    @property
    def error(self) -> str | None:
        found = self.answer.get("error")
        return None if found is None else str(found)


def sampling_spec(spec: ExperimentSpec) -> ExperimentSpec:
    """The source spec's route behind a gateway, with the sampling of the method."""
    gateway = behind_gateway(spec, "fill")
    kept = gateway.sampling.model_dump(exclude={"seed", "temperature", "max_tokens", "max_completion_tokens"})
    # A model that is sent the one name of the limit refuses the other.
    limit = "max_tokens" if gateway.sampling.max_completion_tokens is None else "max_completion_tokens"
    sampling = type(gateway.sampling)(**{**kept, "temperature": TEMPERATURE, limit: MAX_TOKENS})
    return gateway.model_copy(update={"sampling": sampling})


async def analyse(
    store: Store,
    spec: ExperimentSpec,
    wanted: Sequence[Trajectory],
    runs: Sequence[Trajectory],
    generation: Generation,
    record: Callable[[Analysed], None],
    begun: Callable[[str], None],
) -> None:
    """Puts each wanted trajectory through the analyzer; `record` gets what came of each as it comes.

    `runs` are the trajectories that samples may be taken from. `begun` is told the id of each gateway
    execution. Raises EnvironmentMissing before anything is begun,
    RouteStopped if the route refuses for good, WorkerError if the program dies over and over.
    """
    folder = environments.require(ENVIRONMENT)
    async with AsyncExitStack() as stack:
        sampling = None
        if generation.asks_for_samples:
            sampling = await stack.enter_async_context(
                open_gateway(store, gateway_of(sampling_spec(spec), store))
            )
        writing = await stack.enter_async_context(
            open_gateway(store, gateway_of(behind_gateway(spec, "fill"), store))
        )
        for gateway in (sampling, writing):
            if gateway is not None:
                begun(gateway.execution_id)
        log = store.path / "executions" / writing.execution_id / "altk.log"
        python = environments.interpreter(folder)
        variables = {**worker_environment(os.environ), **environments.variables(ENVIRONMENT)}
        queue = iter(wanted)

        async def work() -> None:
            async with AltkProcess(python, variables, log) as altk:
                for one in queue:
                    answer = await altk.ask(_request(spec, one, runs, generation, sampling, writing))
                    for gateway in (sampling, writing):
                        if gateway is not None and gateway.stopped is not None:
                            raise gateway.stopped
                    record(Analysed(one.run, one.task, answer))

        await _all_or_failed([work() for _ in range(min(PROCESSES, len(wanted)))], (sampling, writing))


async def _all_or_failed(
    works: Sequence[Coroutine[Any, Any, None]], gateways: Sequence[OpenGateway | None]
) -> None:
    """Until all work is done; the first failure, of a gateway too, ends the rest."""
    tasks = [asyncio.create_task(work) for work in works]
    watches = [asyncio.create_task(gateway.wait_failed()) for gateway in gateways if gateway is not None]
    to_do = set(tasks)
    try:
        while to_do:
            done, _ = await asyncio.wait((*to_do, *watches), return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                await task
            to_do -= done
    finally:
        for task in (*tasks, *watches):
            task.cancel()
        await asyncio.gather(*tasks, *watches, return_exceptions=True)


def _request(
    spec: ExperimentSpec,
    one: Trajectory,
    runs: Sequence[Trajectory],
    generation: Generation,
    sampling: OpenGateway | None,
    writing: OpenGateway,
) -> dict[str, Any]:
    given = None
    if generation.method == "accurate" and generation.from_runs:
        given = {str(step): replies for step, replies in shared_samples(one, runs).items()}
    trajectory: dict[str, Any] = {
        "messages": list(one.messages),
        "model": spec.route.members[0].model,
        "trace_id": f"{one.task}~{one.run}",
    }
    if one.tools:
        trajectory["tools"] = list(one.tools)
    most = max((len(replies) for replies in (given or {}).values()), default=0)
    return {
        "method": generation.method,
        "trajectory": trajectory,
        "config": analysis_config(most or generation.samples, by_code=spec.agent.kind == "code_react"),
        "samples": given,
        "sampling": None if sampling is None else _place(sampling, one),
        "writing": _place(writing, one),
    }


def _place(gateway: OpenGateway, one: Trajectory) -> dict[str, str]:
    variables = gateway.environment((one.run, one.task))
    return {"url": variables["OPENAI_BASE_URL"], "key": variables["OPENAI_API_KEY"]}
