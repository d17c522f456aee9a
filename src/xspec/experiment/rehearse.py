"""What the simulated model is told before it starts: its members' settings, and every task's known solution."""

from collections.abc import Sequence
from typing import Any

from xspec.benchmarks import package_fingerprint
from xspec.benchmarks.external import EXTERNAL
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


def kept_solutions(benchmark: BenchmarkSpec, store: Store) -> dict[str, Any] | None:
    """The known solution of every task that has one, if they were ever asked for."""
    digest = store.cached_digest(_kept_as(benchmark))
    return None if digest is None else dict(store.json_blob(digest))


async def solutions_of(benchmark: BenchmarkSpec, store: Store, pool: WorkerPool) -> dict[str, Any]:
    """The same; worked out once by the worker, then kept in the store."""
    kept = kept_solutions(benchmark, store)
    if kept is None:
        kept = await pool.solutions()
        store.cache_digest(_kept_as(benchmark), store.put_blob(canonical_bytes(kept)))
    return kept


def _kept_as(benchmark: BenchmarkSpec) -> str:
    return f"solutions-{benchmark.kind}-{benchmark.manifest[7:23]}-{package_fingerprint(benchmark.kind)[:16]}"


async def _scripts(benchmark: BenchmarkSpec, store: Store, pool: WorkerPool | None) -> dict[str, Any]:
    """Instruction and known solution of every task; without a pool those that are kept, if any are."""
    if benchmark.kind == EXTERNAL:
        return {}
    solutions = (
        kept_solutions(benchmark, store) if pool is None else await solutions_of(benchmark, store, pool)
    )
    if solutions is None:
        return {}
    instructions = {row["id"]: row["instruction"] for row in store.json_blob(benchmark.manifest)["tasks"]}
    return {task: {**solution, "instruction": instructions[task]} for task, solution in solutions.items()}
