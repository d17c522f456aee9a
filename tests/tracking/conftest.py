"""Stores whose journals were written by hand, and a look into their MLflow databases without MLflow."""

import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from xspec.records.executions import ExecutionFolder
from xspec.records.journal import Journal
from xspec.records.rows import AttemptEnded, AttemptStarted, Outcome, Step, Trial
from xspec.spec.canonical import canonical_bytes
from xspec.spec.models import ExperimentSpec
from xspec.spec.store import Store
from xspec.tracking import project
from xspec.tracking.project import ProjectionFailed, tracking_environment

TASKS = ("banking.user_task_0", "slack.user_task_1")
OUTCOMES: dict[str, Outcome] = {"+": "pass", "-": "fail", "?": "invalid"}
BEGAN = 1_800_000_000.0


class Maker:
    """Makes executions in a store. `rows` has a text a run, a letter a task: + pass, - fail, ? invalid, . missing."""

    def __init__(self, store: Store, plain: dict[str, Any]) -> None:
        self.store = store
        manifest = {
            "tasks": [
                {
                    "id": t,
                    "cluster": t,
                    "stratum": t.split(".")[0],
                    "difficulty": None,
                    "instruction": "Do it.",
                }
                for t in TASKS
            ]
        }
        plain["benchmark"]["manifest"] = store.put_blob(canonical_bytes(manifest))
        plain["agent"]["prompt"] = store.put_blob(b"You are an agent.")
        self.plain = plain

    def spec(self, **changes: Any) -> ExperimentSpec:
        spec = ExperimentSpec.model_validate_json(json.dumps({**self.plain, **changes}))
        self.store.put_spec(spec)
        return spec

    def execution(
        self, rows: Sequence[str] = ("+-", "++"), *, arm: str | None = "baseline", **changes: Any
    ) -> ExecutionFolder:
        spec = self.spec(k=len(rows), **changes)
        folder = ExecutionFolder.create(self.store, spec.id, arm, ["k=2"])
        self.stint(folder, rows)
        return folder

    def stint(
        self, folder: ExecutionFolder, rows: Sequence[str], *, take: int = 0, torn: bytes = b""
    ) -> None:
        number = max(folder.stints(), default=0) + 1
        lock = {"stint": number, "must_match": {"python": "3.11"}, "served": {}}
        folder.lock_path(number).write_text(json.dumps(lock))
        with Journal(folder.journal_path(number)) as journal:
            for run, row in enumerate(rows):
                for task, letter in zip(TASKS, row, strict=True):
                    if letter == "~":  # a process that was killed in the middle of its first call
                        journal.append(_started(run, task, take))
                    elif letter != ".":
                        _write_trial(journal, run, task, take, OUTCOMES[letter], BEGAN + 1000 * number)
        if torn:
            with folder.journal_path(number).open("ab") as file:
                file.write(torn)


def _started(run: int, task: str, take: int, attempt: int = 0, at: float = BEGAN) -> AttemptStarted:
    return AttemptStarted(
        run=run,
        task=task,
        take=take,
        step=0,
        call=0,
        attempt=attempt,
        member="main",
        at=at,
        spec_id="xs-0",
        request_digest="sha256:0",
        concurrency=4,
    )


def _ended(run: int, task: str, take: int, attempt: int, at: float, failed: bool) -> AttemptEnded:
    return AttemptEnded(
        run=run,
        task=task,
        take=take,
        step=0,
        call=0,
        attempt=attempt,
        member="main",
        at=at,
        status=429 if failed else 200,
        error="rate_limited" if failed else None,
        waited_s=0.5 if attempt else 0,
        latency_s=0.25,
        prompt_tokens=None if failed else 100,
        completion_tokens=None if failed else 10,
        request_ids={"x-request-id": "req_1"},
    )


def _write_trial(journal: Journal, run: int, task: str, take: int, outcome: Outcome, at: float) -> None:
    for attempt in (0, 1):
        journal.append(_started(run, task, take, attempt, at + attempt))
        journal.append(_ended(run, task, take, attempt, at + attempt + 0.25, failed=attempt == 0))
    call = {"id": "call_1", "type": "function", "function": {"name": "pay", "arguments": '{"to": 1}'}}
    journal.append(
        Step(
            run=run,
            task=task,
            take=take,
            step=0,
            at=at,
            request_digest="sha256:0",
            member="main",
            finish_reason="tool_calls",
            refusal=None,
            actions=[{"action": {"name": "pay", "arguments": {"to": run}}, "error": False}],
            added=[{"role": "user", "content": "Do it."}, {"role": "assistant", "tool_calls": [call]}],
        )
    )
    journal.append(
        Trial(
            run=run,
            task=task,
            take=take,
            outcome=outcome,
            cause={"pass": None, "fail": "verdict", "invalid": "route:rate_limited"}[outcome],
            ended="answered",
            verdict=None if outcome == "invalid" else {"passed": outcome == "pass", "detail": {}},
            steps=1,
            calls=1,
            attempts=2,
            retry_count=1,
            prompt_tokens=100,
            completion_tokens=10,
            waited_s=0.5,
            started_at=at,
            ended_at=at + 2,
        )
    )


class Database:
    """What stands in a store's MLflow database."""

    def __init__(self, store: Path) -> None:
        self.path = store / "mlflow.db"

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        with contextlib.closing(sqlite3.connect(self.path, timeout=20)) as connection:
            return connection.execute(sql, values).fetchall()

    def counts(self) -> dict[str, int]:
        """Rows of the tables that a second projection must not add to."""
        return {
            name: self.rows(f"SELECT count(*) FROM {name}")[0][0]
            for name in ("runs", "metrics", "latest_metrics", "params", "tags", "experiments")
        }

    def statuses(self) -> dict[str, str]:
        return dict(self.rows("SELECT name, status FROM runs"))

    def metrics_of(self, name: str) -> dict[str, float]:
        return dict(
            self.rows(
                "SELECT m.key, m.value FROM latest_metrics m JOIN runs r ON r.run_uuid = m.run_uuid WHERE r.name = ?",
                name,
            )
        )

    def tags_of(self, name: str) -> dict[str, str]:
        return dict(
            self.rows(
                "SELECT t.key, t.value FROM tags t JOIN runs r ON r.run_uuid = t.run_uuid WHERE r.name = ?",
                name,
            )
        )


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture
def maker(store: Store, plain: dict[str, Any]) -> Maker:
    plain["k"] = 2
    return Maker(store, plain)


class Zygote:
    """A process that has MLflow imported and projects each store in a fork, in place of one process a projection."""

    def __init__(self) -> None:
        program = Path(__file__).with_name("zygote.py")
        self._process = subprocess.Popen(
            [sys.executable, str(program)],
            env=tracking_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def project(self, store: Path, *words: str) -> None:
        """What `run_tracking_process` does."""
        ((code, said),) = self.at_once(store, 1, *words)
        if code:
            raise ProjectionFailed(f"MLflow could not be brought up to date ({said})")

    def at_once(self, store: Path, count: int, *words: str) -> list[tuple[int, str]]:
        """So many processes project one store; exit code and last line of each."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([count, str(store), *words]) + "\n")
        self._process.stdin.flush()
        return [(code, said) for code, said in json.loads(self._process.stdout.readline())]

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(10)
        self._process.stdout.close()


@pytest.fixture(scope="session")
def zygote() -> Iterator[Zygote]:
    process = Zygote()
    yield process
    process.close()


@pytest.fixture(autouse=True)
def quick_projection(zygote: Zygote, monkeypatch: pytest.MonkeyPatch) -> None:
    """Importing MLflow takes seconds: every test but the few that say otherwise shares one import."""
    monkeypatch.setattr(project, "run_tracking_process", zygote.project)


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory, zygote: Zygote) -> Path:
    """An empty MLflow database: making one takes seconds."""
    empty = Store(tmp_path_factory.mktemp("template") / "store")
    zygote.project(empty.path)
    return empty.path / "mlflow.db"


@pytest.fixture
def database(store: Store, template: Path) -> Database:
    """The store's database, ready made."""
    shutil.copy(template, store.path / "mlflow.db")
    return Database(store.path)


@pytest.fixture
def python() -> Callable[..., str]:
    """Runs a Python program as the tracking process is run; returns what it printed."""

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, *arguments],
            env=tracking_environment(),
            capture_output=True,
            text=True,
            timeout=240,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    return run


@pytest.fixture
def canary(monkeypatch: pytest.MonkeyPatch) -> bytes:
    """A key in the environment that must not be found anywhere."""
    value = "sk-canary-0123456789abcdefABCDEF"
    for name in ("XSPEC_TEST_KEY", "OPENAI_API_KEY", "MLFLOW_TRACKING_TOKEN"):
        monkeypatch.setenv(name, value)
    assert os.environ["OPENAI_API_KEY"] == value
    return value.encode()
