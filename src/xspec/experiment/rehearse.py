"""What the simulated model is told before it starts: its members' settings, and every task's known solution."""

from collections.abc import Sequence
from typing import Any

from xspec.benchmarks import package_fingerprint
from xspec.benchmarks.pool import WorkerPool
from xspec.rehearsal.address import member_key
from xspec.spec.canonical import canonical_bytes
from xspec.spec.members import RehearsalMember
from xspec.spec.models import BenchmarkSpec, ExperimentSpec
from xspec.spec.store import Store


def rehearsal_members(spec: ExperimentSpec) -> list[RehearsalMember]:
    """The members of the spec's route that are simulated."""
    return [member for member in spec.route.members if isinstance(member, RehearsalMember)]


async def rehearsal_config(
    specs: Sequence[ExperimentSpec], store: Store, pool: WorkerPool | None
) -> dict[str, Any]:
    """The server's configuration for specs of one benchmark (see xspec.rehearsal.config). Without a pool: no tasks."""
    members = [member.model_dump(mode="python") for spec in specs for member in rehearsal_members(spec)]
    return {
        "members": {
            member_key(m): {name: m[name] for name in ("model", "behaviour", "faults")} for m in members
        },
        "tasks": await _scripts(specs[0].benchmark, store, pool),
    }


async def solutions_of(benchmark: BenchmarkSpec, store: Store, pool: WorkerPool) -> dict[str, Any]:
    """The known solution of every task that has one; worked out once by the worker, then kept in the store."""
    name = f"solutions-{benchmark.kind}-{benchmark.manifest[7:23]}-{package_fingerprint(benchmark.kind)[:16]}"
    digest = store.cached_digest(name)
    if digest is None:
        digest = store.put_blob(canonical_bytes(await pool.solutions()))
        store.cache_digest(name, digest)
    solutions: dict[str, Any] = store.json_blob(digest)
    return solutions


async def _scripts(benchmark: BenchmarkSpec, store: Store, pool: WorkerPool | None) -> dict[str, Any]:
    """Instruction and known solution of every task."""
    if pool is None:
        return {}
    solutions = await solutions_of(benchmark, store, pool)
    instructions = {row["id"]: row["instruction"] for row in store.json_blob(benchmark.manifest)["tasks"]}
    return {task: {**solution, "instruction": instructions[task]} for task, solution in solutions.items()}
