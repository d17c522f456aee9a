"""How report and queries grow with the store: python -m bench.store [attempts …]

Synthesises stores as Parquet, the form they are read in (what projecting a journal costs is bench/projection.py's
business): executions of 5 runs over 92 tasks with 11 attempts a trial, so that 200 executions are 1,000 runs and a
million attempts. Then measures, each in a process of its own, the report (load, figures, JSON) and a group-by query
over the attempts: wall and CPU seconds, and peak memory.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from xspec.records.executions import ExecutionFolder
from xspec.records.parquet import parquet_folder, whole_parquet
from xspec.records.parquet_columns import PARQUET_LAYOUT, STINT_TABLES
from xspec.spec.canonical import canonical_bytes
from xspec.spec.models import ExperimentSpec
from xspec.spec.store import Store
from xspec.tracking.summary import project_tables

RUNS, TASKS, ATTEMPTS = 5, 92, 11


QUERY = (
    "SELECT member, status, error, count(*) AS n, sum(latency_s) AS latency_s, sum(prompt_tokens) AS tokens,"
    " count(DISTINCT execution_id) AS executions FROM attempts GROUP BY ALL ORDER BY n DESC"
)
MEASURED = {
    "report": ["report", "--format", "json"],
    "query": ["query", QUERY, "--format", "json"],
}
_RUNNER = """
import resource, sys, time
begun = time.perf_counter()
from xspec.tracking import project
project.pending = lambda store: []  # MLflow is not what is measured here
from xspec.__main__ import main
code = main(sys.argv[1:])
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(f"{time.perf_counter() - begun:.3f} {time.process_time():.3f} {peak:.0f}", file=sys.stderr)
sys.exit(code)
"""


def make_store(path: Path, attempts: int) -> int:
    """Fills a store with executions that have `attempts` attempts between them; returns how many executions."""
    store = Store(path)
    tasks = [f"banking.user_task_{i}" for i in range(TASKS)]
    manifest = {"tasks": [{"id": t, "cluster": t, "stratum": "banking", "difficulty": None} for t in tasks]}
    digest = store.put_blob(canonical_bytes(manifest))
    executions = max(1, attempts // 5_000)
    rng = np.random.default_rng(1)
    for number in range(executions):
        spec = _spec(tasks, digest, store, seed=number % 8)
        store.put_spec(spec)
        folder = ExecutionFolder.create(store, spec.id, f"arm-{number % 8}", ["k=5"])
        folder.lock_path(1).write_text(json.dumps({"must_match": {}}))
        folder.journal_path(1).write_bytes(b"")
        parquet_folder(folder).mkdir()
        tables = {"trials": _trials(rng, tasks), "attempts": _attempts(rng, tasks)}
        origin = {"execution_id": folder.path.name, "spec_id": spec.id, "arm": folder.info.arm, "stint": 1}
        for name, schema in STINT_TABLES.items():
            columns = tables.get(name, {})
            length = len(columns["run"]) if columns else 0
            with whole_parquet(parquet_folder(folder) / f"{name}-1.parquet", schema) as writer:
                writer.write_table(_table(schema, {**origin, **columns}, length))
        counts = {"trials": RUNS * TASKS, "attempts": RUNS * TASKS * ATTEMPTS, "abandoned_attempts": 0}
        tokens = 1100 * RUNS * TASKS * ATTEMPTS
        stints = {
            "1": {
                "journal_bytes": 0,
                **counts,
                "tokens": tokens,
                "replies": counts["attempts"],
                "uncounted": 0,
            }
        }
        (parquet_folder(folder) / "stints.json").write_text(
            json.dumps({"layout": PARQUET_LAYOUT, "stints": stints})
        )
        project_tables(store, folder)
    return executions


def _table(schema: pa.Schema, columns: dict[str, Any], length: int) -> pa.Table:
    def array(field: pa.Field) -> pa.Array:
        value = columns.get(field.name)
        if value is None or isinstance(value, str | int):
            return pa.array([value] * length, field.type)
        return pa.array(value, field.type)

    return pa.Table.from_arrays([array(field) for field in schema], schema=schema)


def _trials(rng: np.random.Generator, tasks: list[str]) -> dict[str, Any]:
    n = RUNS * TASKS
    started = (1_800_000_000_000_000 + rng.integers(0, 10**9, n)).tolist()
    return {
        "run": np.repeat(np.arange(RUNS), TASKS),
        "task": tasks * RUNS,
        "take": 0,
        "outcome": rng.choice(["pass", "fail", "invalid"], n, p=[0.74, 0.25, 0.01]).tolist(),
        "ended": "answered",
        "verdict": '{"passed":true,"detail":{}}',
        "steps": 8,
        "calls": 8,
        "attempts": ATTEMPTS,
        "retry_count": 3,
        "prompt_tokens": 1000 * ATTEMPTS,
        "completion_tokens": 100 * ATTEMPTS,
        "waited_s": rng.random(n),
        "started_at": started,
        "ended_at": [time + 60_000_000 for time in started],
        "drift": [[]] * n,
    }


def _attempts(rng: np.random.Generator, tasks: list[str]) -> dict[str, Any]:
    n = RUNS * TASKS * ATTEMPTS
    status = rng.choice([200, 429, 503], n, p=[0.9, 0.07, 0.03])
    return {
        "run": np.repeat(np.arange(RUNS), TASKS * ATTEMPTS),
        "task": [task for _ in range(RUNS) for task in tasks for _ in range(ATTEMPTS)],
        "take": 0,
        "step": np.tile(np.arange(ATTEMPTS), RUNS * TASKS),
        "call": 0,
        "attempt": 0,
        "member": rng.choice(["a", "b"], n).tolist(),
        "started_at": (1_800_000_000_000_000 + rng.integers(0, 10**9, n)).tolist(),
        "ended_at": (1_800_001_000_000_000 + rng.integers(0, 10**9, n)).tolist(),
        "concurrency": 16,
        "status": status,
        "error": np.where(status == 200, None, "refused").tolist(),
        "waited_s": rng.random(n),
        "latency_s": rng.random(n),
        "prompt_tokens": rng.integers(500, 1500, n),
        "completion_tokens": rng.integers(50, 150, n),
        "request_ids": [f'{{"x-request-id":"{i:032x}"}}' for i in rng.integers(0, 2**60, n).tolist()],
        "drift": [[]] * n,
        "request_digest": [f"sha256:{i:064x}" for i in rng.integers(0, 2**60, n).tolist()],
    }


def _spec(tasks: list[str], manifest: str, store: Store, seed: int) -> ExperimentSpec:
    member = {"kind": "openai", "base_url": "http://127.0.0.1:9/v1", "path": "/chat/completions"}
    member |= {"model": "small-2026-01-01", "api_key_env": "XSPEC_BENCH_KEY"}
    retry = {"max_attempts": 3, "backoff_s": 1, "backoff_base": 2, "backoff_max_s": 60}
    plain = {
        "scheme": 1,
        "benchmark": {
            "kind": "agentdojo",
            "version": "v1",
            "split": "all",
            "tasks": tasks,
            "manifest": manifest,
        },
        "agent": {
            "kind": "tool_loop",
            "version": 1,
            "max_steps": 30,
            "tool_timeout_s": 60,
            "prompt": store.put_blob(b"You are an agent."),
        },
        "route": {
            "mode": "floating",
            "members": [{**member, "name": name} for name in ("a", "b")],
            "granularity": "call",
            "seed": seed,
            "timeout_s": 60,
            "max_wait_s": 60,
            "retry": {**retry, "statuses": [429], "timeouts": True, "connection_errors": True},
        },
        "sampling": {"temperature": 0},
        "drift": {"served_model": "invalidate", "upstream": "invalidate", "fingerprint": "record"},
        "guide": {"kind": "none"},
        "k": RUNS,
    }
    return ExperimentSpec.model_validate_json(json.dumps(plain))


def measure(path: Path, arguments: list[str]) -> tuple[float, float, float]:
    """Wall seconds, CPU seconds and megabytes of one command over the store."""
    done = subprocess.run(
        [sys.executable, "-c", _RUNNER, *arguments, "--store", str(path)], capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    wall, cpu, megabytes = map(float, done.stderr.strip().splitlines()[-1].split())
    return wall, cpu, megabytes


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("attempts", nargs="*", type=int, default=[10_000, 100_000, 1_000_000])
    rows = []
    for attempts in parser.parse_args().attempts:
        with tempfile.TemporaryDirectory(prefix="xspec-bench-") as folder:
            executions = make_store(Path(folder) / "store", attempts)
            row: dict[str, float] = {
                "attempts": executions * RUNS * TASKS * ATTEMPTS,
                "runs": executions * RUNS,
            }
            for name, words in MEASURED.items():
                wall, cpu, megabytes = measure(Path(folder) / "store", words)
                row |= {f"{name}_s": wall, f"{name}_cpu_s": cpu, f"{name}_mb": megabytes}
            rows.append(row)
    print(json.dumps({"stores": rows, "largest": rows[-1]}, indent=2))


if __name__ == "__main__":
    main()
