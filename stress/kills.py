"""SIGKILL at seeded moments, of every kind of process, then resume until everything is finished."""

import contextlib
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from stress.line import Line, equal
from stress.program import Program
from xspec.records.executions import ExecutionFolder, executions_of
from xspec.spec.store import Store

SHARES = {"member": 0.5, "zygote": 0.2, "main": 0.15, "joblib": 0.08, "rehearsal": 0.07}
LATENCY_S = 0.15
QUICK = ["benchmark=choices", "workers=4", "max_invalid_share=1", f"provider.faults.latency_s={LATENCY_S}"]
ARMS = 2
K = 12
TASKS = 24
"""Of the benchmark `choices`."""

Key = tuple[str, int, str, int]


@dataclass
class _State:
    """What was seen so far. `kept`: execution, run, task, take of every trial row."""

    draw: random.Random
    root: Path
    kept: set[Key] = field(default_factory=set)
    lost: int = 0
    left: list[str] = field(default_factory=list)
    tracebacks: int = 0
    killed: Counter[str] = field(default_factory=Counter)
    stints: int = 0

    def folders(self, name: str) -> list[ExecutionFolder]:
        path = self.root / name
        return executions_of(Store(path)) if (path / "store.json").exists() else []

    def look(self, name: str) -> None:
        """Every trial row that was there must still be there."""
        now = {
            (f.path.name, r["run"], r["task"], r["take"]) for f in self.folders(name) for r in f.rows("trial")
        }
        ids = {folder.path.name for folder in self.folders(name)}
        before = {key for key in self.kept if key[0] in ids}
        self.lost += len(before - now)
        self.kept |= now

    def bytes(self, name: str) -> int:
        files = (self.root / name).glob("executions/ex-*/journal-*.jsonl")
        return sum(path.stat().st_size for path in files)


def run(root: Path, *, kills: int, seed: int) -> list[Line]:
    """`kills` kills in all, spread over the kinds of processes; then one run to the end."""
    state = _State(random.Random(seed), root)
    wanted = {kind: round(share * kills) for kind, share in SHARES.items()}
    wanted["member"] += kills - sum(wanted.values())
    lines: list[Line] = []
    with_joblib = wanted.pop("joblib")
    _single(state, wanted)
    lines += _ended(state, "kills", [*QUICK, f"k={K}"], 1)
    _jobs(state, with_joblib)
    lines += _ended(state, "sweep", _sweep(), ARMS)
    by_kind = ", ".join(f"{kind} {count}" for kind, count in sorted(state.killed.items()))
    return [
        equal("kills", f"SIGKILLs ({by_kind}) in {state.stints} stints", kills, state.killed.total()),
        equal("kills", "finished trials lost", 0, state.lost),
        equal("kills", "processes left behind", [], state.left),
        equal("kills", "tracebacks", 0, state.tracebacks),
        *lines,
    ]


def _sweep() -> list[str]:
    return [*QUICK, f"k={K}", "+arm=baseline,guided", "hydra/launcher=joblib", "-m"]


@contextlib.contextmanager
def _stint(state: _State, name: str, command: list[str]) -> Iterator[Program]:
    overrides = [word for word in command if word != "-m"]
    options = [word for word in command if word == "-m"]
    program = Program(state.root, [*overrides, f"store={state.root / name}", *options])
    state.stints += 1
    try:
        yield program
        program.wait()
    finally:
        program.end()
    state.left += program.left()
    state.tracebacks += "Traceback" in program.err
    state.look(name)


def _single(state: _State, wanted: dict[str, int]) -> None:
    """Members and zygotes are replaced and the stint goes on; without main or the model's server it ends."""
    fatal = ["main"] * wanted["main"] + ["rehearsal"] * wanted["rehearsal"]
    mild = ["member"] * wanted["member"] + ["zygote"] * wanted["zygote"]
    state.draw.shuffle(fatal)
    state.draw.shuffle(mild)
    total = len(fatal) + len(mild)
    share = max(1, -(-len(mild) // max(1, len(fatal))))
    while fatal or mild:
        if state.stints > 2 * total:
            raise RuntimeError(f"{state.stints} stints, and {len(fatal) + len(mild)} kills are still to come")
        now, mild = mild[:share], mild[share:]
        last = fatal.pop() if fatal else None
        now += [last] if last else []
        with _stint(state, "kills", [*QUICK, f"k={_more(state)}"]) as program:
            begun = state.bytes("kills")
            if last == "main" and state.draw.random() < 0.25:
                # Now and then before anything is written: while it composes, compiles, forks or takes the lease.
                time.sleep(state.draw.uniform(0.3, 2.5))
                now, mild = [last], mild + now[:-1]
            else:
                program.until(lambda begun=begun: state.bytes("kills") > begun)
            for number, kind in enumerate(now):
                time.sleep(state.draw.uniform(0.02, 0.25))
                if not _kill(state, program, kind):
                    mild += [one for one in now[number:] if one in ("member", "zygote")]
                    fatal += [one for one in now[number:] if one not in ("member", "zygote")]
                    break


def _more(state: _State) -> int:
    """A k that leaves enough to do: another spec, and so another execution, once the last is well under way."""
    well_under_way = sum(len(f.progress().trials) >= (K - 2) * TASKS for f in state.folders("kills"))
    return K + well_under_way


def _kill(state: _State, program: Program, kind: str) -> bool:
    """Kills one process of the kind; False if the command ended before there was one."""
    chosen: list[psutil.Process] = []

    def find() -> bool:
        chosen[:] = [program.main] if kind == "main" else program.of_kind(kind)
        return bool(chosen) and program.process.poll() is None

    while program.until(find):
        try:
            state.draw.choice(sorted(chosen, key=lambda process: process.pid)).send_signal(signal.SIGKILL)
        except psutil.NoSuchProcess:
            continue
        state.killed[kind] += 1
        return True
    return False


def _jobs(state: _State, kills: int) -> None:
    """The job processes of a sweep: one kill takes all of them, as loky ends the others."""
    while kills:
        with _stint(state, "sweep", _sweep()) as program:
            begun = state.bytes("sweep")
            if program.until(lambda begun=begun: state.bytes("sweep") > begun):
                time.sleep(state.draw.uniform(0.1, 1.0))
                kills -= _kill(state, program, "joblib")
            elif program.process.returncode == 0:
                raise RuntimeError("the sweep was finished before all its kills: raise K")


def _ended(state: _State, name: str, command: list[str], arms: int) -> list[Line]:
    """One run to the end, and what the journals hold then."""
    with _stint(state, name, command) as program:
        code = program.wait()
    lines = [equal("kills", f"{name}: exit code of the last run", 0, code)]
    folders = [folder for folder in state.folders(name) if len(folder.progress().trials) >= K * TASKS]
    lines.append(
        Line(
            "kills",
            f"{name}: executions finished",
            f"at least {arms}",
            str(len(folders)),
            len(folders) >= arms,
        )
    )
    twice = wrong = 0
    for folder in state.folders(name):
        rows = [(row["run"], row["task"], row["take"]) for row in folder.rows("trial")]
        twice += len(rows) - len(set(rows))
        progress = folder.progress()
        replaced = [r for r in folder.rows("trial") if progress.trials[r["run"], r["task"]].take != r["take"]]
        # Only what a broken worker made invalid is owed a second try.
        wrong += sum((row["outcome"], row["cause"]) != ("invalid", "worker") for row in replaced)
        owned = progress.abandoned_attempts + sum(row["attempts"] for row in folder.rows("trial"))
        wrong += owned != progress.attempts
    lines.append(equal("kills", f"{name}: trial rows twice", 0, twice))
    lines.append(equal("kills", f"{name}: finished trials begun again, attempts not owned up to", 0, wrong))
    return lines
