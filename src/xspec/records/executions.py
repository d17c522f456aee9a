"""One folder an execution: what it is, who works on it, and a journal and a lock for every stint.

executions/ex-20261130T215900-1a2b3c4d/
    execution.json      id, spec id, arm label, when it was begun
    lease               held while a process works on it
    lock-1.json         environment of stint 1 (later stints: lock-2.json, …)
    journal-1.jsonl     rows of stint 1
    worlds/0/TASK~0/    what the world of run 0, task TASK, take 0 kept, where the benchmark keeps something
"""

import itertools
import json
import secrets
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from xspec.errors import StoreError
from xspec.records.journal import read_journal, rows_in_form
from xspec.records.rows import OUTCOMES, Trial
from xspec.spec.store import Store, write_whole


@dataclass(frozen=True, slots=True)
class ExecutionInfo:
    """`arm` is a label only; `began_at` is wall-clock seconds; `command` the arguments that continue it."""

    execution_id: str
    spec_id: str
    arm: str | None
    began_at: float
    command: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Progress:
    """What the journals of an execution say: the current trial of each (run, task), and what was left behind.

    `takes` counts, for each (run, task), the tries begun so far, `rows` those that came to a trial row;
    `superseded` the trial rows that a later take replaced; `abandoned_attempts` the attempts of takes that never
    came to a trial row (their process was killed); `tokens` those of all attempts, whatever became of their trial.
    """

    trials: dict[tuple[int, str], Trial]
    takes: dict[tuple[int, str], int]
    rows: dict[tuple[int, str], int]
    superseded: int
    attempts: int
    abandoned_attempts: int
    tokens: int


class ExecutionFolder:
    """Reads and names the files of one execution."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, store: Store, spec_id: str, arm: str | None, command: Sequence[str]) -> "ExecutionFolder":
        """Begins a new execution of a stored spec."""
        now = time.time()
        stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime(now))
        execution_id = f"ex-{stamp}-{secrets.token_hex(4)}"
        folder = cls(store.path / "executions" / execution_id)
        folder.path.mkdir()
        info = ExecutionInfo(execution_id, spec_id, arm, now, tuple(command))
        write_whole(folder.path / "execution.json", json.dumps(asdict(info), indent=1).encode())
        return folder

    @property
    def info(self) -> ExecutionInfo:
        path = self.path / "execution.json"
        try:
            data = json.loads(path.read_bytes())
            return ExecutionInfo(**{**data, "command": tuple(data["command"])})
        except (OSError, ValueError, TypeError, KeyError):
            raise StoreError(f"{path} is missing or was changed; move that folder away to go on") from None

    def stints(self) -> list[int]:
        """Numbers of the stints that have a journal, oldest first."""
        return sorted(int(p.stem.removeprefix("journal-")) for p in self.path.glob("journal-*.jsonl"))

    def journal_path(self, stint: int) -> Path:
        return self.path / f"journal-{stint}.jsonl"

    def lock_path(self, stint: int) -> Path:
        return self.path / f"lock-{stint}.json"

    def lock(self, stint: int) -> dict[str, Any]:
        """What the stint found itself in (see xspec.experiment.lock)."""
        path = self.lock_path(stint)
        try:
            data = json.loads(path.read_bytes())
        except (OSError, ValueError):
            data = None
        if not isinstance(data, dict) or not isinstance(data.get("must_match"), dict):
            raise StoreError(
                f"{path} is missing or was changed; `reproduce` begins a new execution, and a report goes on "
                f"without this one once {self.path.name} is moved away"
            )
        return data

    def locks(self) -> list[dict[str, Any]]:
        """The lock of each stint, for what only tells of them; empty where it was deleted or spoilt."""
        found = []
        for stint in self.stints():
            try:
                found.append(self.lock(stint))
            except StoreError:
                found.append({})
        return found

    def world_folder(self, run: int, task: str, take: int) -> Path:
        """Where a benchmark that keeps what happened in its worlds does so for this take of a trial."""
        return self.path / "worlds" / str(run) / f"{task}~{take}"

    def begin_world_folder(self, run: int, task: str, take: int) -> Path:
        """Makes that folder. What a killed process left there without a row in the journal is moved beside it."""
        folder = self.world_folder(run, task, take)
        if folder.exists():
            beside = (folder.with_name(f"{folder.name}.abandoned{n}") for n in itertools.count())
            folder.rename(next(path for path in beside if not path.exists()))
        folder.mkdir(parents=True)
        return folder

    def replayed(self) -> tuple[int, int] | None:
        """(identical, all) of the last replay of the whole execution (see xspec.experiment.replay); None if none."""
        try:
            data = json.loads((self.path / "replay.json").read_bytes())
            return int(data["identical"]), int(data["trials"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def rows(self, *kinds: str) -> Iterator[dict[str, Any]]:
        """Rows of the named kinds over all stints, in order."""
        for stint in self.stints():
            yield from read_journal(self.journal_path(stint), kinds)

    def progress(self) -> Progress:
        """What is finished, and what killed processes left. Raises StoreError if a journal was changed."""
        with rows_in_form(self.path):
            return self._progress()

    def _progress(self) -> Progress:
        trials: dict[tuple[int, str], Trial] = {}
        takes: dict[tuple[int, str], int] = {}
        rows: dict[tuple[int, str], int] = {}
        attempts: dict[tuple[int, str, int], int] = {}
        ended: set[tuple[int, str, int]] = set()
        superseded = tokens = 0
        for row in self.rows("attempt_started", "attempt", "trial"):
            if row["kind"] == "attempt":
                tokens += (row["prompt_tokens"] or 0) + (row["completion_tokens"] or 0)
                continue
            key = (row["run"], row["task"])
            takes[key] = max(takes.get(key, 0), row["take"] + 1)
            if row["kind"] == "attempt_started":
                attempts[(*key, row["take"])] = attempts.get((*key, row["take"]), 0) + 1
                continue
            trial = Trial(**row)
            if trial.outcome not in OUTCOMES:
                raise ValueError(f"no outcome is called {trial.outcome!r}")
            ended.add((*key, trial.take))
            superseded += key in trials
            rows[key] = rows.get(key, 0) + 1
            if key not in trials or trials[key].take < trial.take:
                trials[key] = trial
        abandoned = sum(count for take, count in attempts.items() if take not in ended)
        return Progress(trials, takes, rows, superseded, sum(attempts.values()), abandoned, tokens)


def executions_of(store: Store, spec_id: str | None = None) -> list[ExecutionFolder]:
    """The executions in the store, oldest first; of one spec if it is named."""
    found = [
        ExecutionFolder(p)
        for p in (store.path / "executions").glob("ex-*")
        if (p / "execution.json").exists()
    ]
    kept = [(f.info, f) for f in found]
    kept = [pair for pair in kept if spec_id is None or pair[0].spec_id == spec_id]
    return [folder for _, folder in sorted(kept, key=lambda pair: (pair[0].began_at, pair[0].execution_id))]


def execution_named(store: Store, beginning: str) -> ExecutionFolder:
    """The execution whose id begins so. Raises StoreError if there is none, or more than one."""
    found = [folder for folder in executions_of(store) if folder.path.name.startswith(beginning)]
    if len(found) != 1:
        how = "is not in" if not found else f"fits {len(found)} executions in"
        raise StoreError(f"{beginning!r} {how} {store.path}; `python -m xspec report` names them")
    return found[0]
