"""The order of the checks: what costs nothing first, and nothing after what makes it pointless."""

import asyncio
import contextlib
import os
import tempfile
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

from xspec.doctor import calls, surroundings
from xspec.doctor.clock import clock
from xspec.doctor.findings import Finding, Say, note, ok, problem
from xspec.doctor.model_list import models_of, near_names
from xspec.doctor.probe import Prober, WireError
from xspec.doctor.smoke import one_trial
from xspec.errors import UserError
from xspec.experiment.compile import Compiled
from xspec.experiment.started import PLAIN_PATH
from xspec.local.model import require_local
from xspec.local.process import LocalServer, server_settings
from xspec.rehearsal.address import member_key
from xspec.rehearsal.process import RehearsalServer
from xspec.route.members import Binding
from xspec.spec.members import Member
from xspec.spec.models import ExperimentSpec
from xspec.spec.store import Store


def examine(
    compiled: Compiled, store: Store, say: Say, *, environ: Mapping[str, str] = os.environ, trial: bool = True
) -> list[Finding]:
    """Makes every check that makes sense, says each finding as it comes, and returns them all."""
    findings: list[Finding] = []

    def tell(finding: Finding) -> None:
        findings.append(finding)
        say(finding)

    spec = compiled.spec
    for finding in surroundings.keys(spec, environ, surroundings.dotenv_values(Path(".env"))):
        tell(finding)
    for finding in (*surroundings.reroutes(spec, environ), *surroundings.pace()):
        tell(finding)
    for warning in compiled.warnings:
        what, _, do = warning.partition("; ")
        tell(note("model", what, do, matters=True))
    if any(finding.level == "problem" for finding in findings):
        return findings
    with tempfile.TemporaryDirectory(prefix="xspec-doctor-") as folder:
        asyncio.run(_members(spec, store, environ, Path(folder), tell))
        if trial and not any(finding.level == "problem" for finding in findings):
            for finding in one_trial(compiled, store, Path(folder) / "store"):
                tell(finding)
    return findings


async def _members(
    spec: ExperimentSpec, store: Store, environ: Mapping[str, str], folder: Path, tell: Say
) -> None:
    ca = store.blob(spec.route.ca) if spec.route.ca else None
    for member in spec.route.members:
        name = f" ({member.name})" if len(spec.route.members) > 1 else ""

        def say(finding: Finding, name: str = name) -> None:
            tell(Finding(finding.level, finding.about, finding.what + name, finding.do, finding.matters))

        async with _binding(member, folder) as binding:
            try:
                await _member(Prober(spec, member, folder, environ, binding, ca), say)
            except UserError as error:
                say(problem("route", str(error)))


async def _member(prober: Prober, say: Say) -> None:
    models: list[str] = []
    try:
        listed = await prober.models()
    except WireError:
        pass
    else:
        models = models_of(listed)
        for finding in clock(listed):
            say(finding)
    call = await calls.minimal_call(prober, models)
    say(call)
    if call.level == "problem":
        return
    say(_listed(prober.member.model, models))
    if prober.spec.agent.kind == "tool_loop":  # the others get by without tool calls
        say(await calls.tool_call(prober))
    say(await calls.streaming(prober))
    async for finding in calls.determinism(prober):
        say(finding)
    for finding in (*calls.verified(prober), *calls.limits(prober)):
        say(finding)


def _listed(model: str, models: list[str]) -> Finding:
    if not models:
        return ok("model list", "none is offered")
    if model in models:
        return ok("model list", f"{model} is one of {len(models)}")
    near = near_names(model, models)
    return note(
        "model list",
        f"{model} answers, but is none of the {len(models)} listed",
        f"near names: {', '.join(near)}" if near else None,
        matters=True,
    )


@contextlib.asynccontextmanager
async def _binding(member: Member, folder: Path) -> AsyncIterator[Binding | None]:
    """The address of a member that xspec starts, for as long as it is looked at; None for a provider's."""
    if member.kind == "openai":
        yield None
        return
    if member.kind == "local":
        require_local(member.model, member.gguf_sha256)
        async with LocalServer(folder / "local.log") as local:
            yield Binding(await local.start(server_settings(member)), lambda place: PLAIN_PATH)
        return
    plain = member.model_dump(mode="python")
    config = {
        "members": {member_key(plain): {n: plain[n] for n in ("model", "behaviour", "faults")}},
        "tasks": {},
    }
    async with RehearsalServer(folder / "rehearsal.log") as server:
        # The path that belongs to no trial: probes are none, and meet none of the injected faults.
        yield Binding(await server.start(config), lambda place: "/v1/chat/completions")
