"""A benchmark's task manifest: asked of its worker once, then kept in the store."""

from typing import Any

from xspec.benchmarks import BENCHMARKS, package_fingerprint
from xspec.benchmarks.external import EXTERNAL
from xspec.benchmarks.pool import WorkerPool
from xspec.errors import SpecError
from xspec.spec.canonical import canonical_bytes, digest_of
from xspec.spec.config import BenchmarkConfig
from xspec.spec.store import Store


async def task_manifest(benchmark: BenchmarkConfig, store: Store) -> tuple[str, dict[str, Any]]:
    """Digest and content of the benchmark's manifest, asked of its worker once and then kept in the store."""
    settings = dict(benchmark.settings or {})
    if benchmark.kind == EXTERNAL:
        raise SpecError(
            "benchmark external has no worlds or verdicts of its own: it is for `python -m xspec gateway`"
        )
    if benchmark.kind not in BENCHMARKS:
        raise SpecError(
            f"benchmark.kind: there is no benchmark {benchmark.kind!r}; known: {', '.join(BENCHMARKS)}"
        )
    key = canonical_bytes(
        [benchmark.kind, benchmark.version, benchmark.split, settings, package_fingerprint(benchmark.kind)]
    )
    name = f"manifest-{benchmark.kind}-{digest_of(key)[7:23]}"
    digest = store.cached_digest(name)
    if digest is None:
        async with WorkerPool(
            benchmark.kind, benchmark.version, benchmark.split, settings, members=1, log=None
        ) as pool:
            digest = store.put_blob(canonical_bytes(await pool.describe()))
        store.cache_digest(name, digest)
    manifest = store.json_blob(digest)
    assert isinstance(manifest, dict)
    return digest, manifest
