"""Generating a guide from a stored execution, whole: what is to be done, what was done before a kill, the file."""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from xspec.benchmarks import environments
from xspec.errors import UserError, XspecError
from xspec.experiment.generate_guide import ENVIRONMENT, Analysed, analyse
from xspec.experiment.generation_price import Price, price_of
from xspec.experiment.guide_making import guide_file, merged_rules, spent_by
from xspec.experiment.known_flips import Found, found_flips
from xspec.experiment.trajectories import Trajectory, trajectories
from xspec.guides.altk_method import TEMPERATURE, Generation
from xspec.guides.guide_file import GuideFile
from xspec.records.executions import ExecutionFolder
from xspec.spec.models import ExperimentSpec
from xspec.spec.store import Store, write_whole


@dataclass(frozen=True, slots=True)
class Made:
    """A generated guide. `failed` are the trajectories that the analyzer could not take, with what it said."""

    file: GuideFile
    failed: tuple[Analysed, ...]
    found: Found | None


class GuideGeneration:
    """One generation. What each trajectory gave is kept in `<output>.partial` until there is a guide.

    Raises UserError if the execution has nothing to generate from.
    """

    def __init__(
        self, store: Store, folder: ExecutionFolder, generation: Generation, runs: Sequence[int], output: Path
    ) -> None:
        self._store = store
        self._folder = folder
        self._generation = generation
        self._runs = tuple(runs)
        self.kept = output.with_name(f"{output.name}.partial")
        self.spec: ExperimentSpec = store.spec(folder.info.spec_id)
        if self.spec.agent.kind == "gateway":
            raise UserError(f"{folder.path.name} was played by another program; there are no trials of it")
        for run in self._runs:
            if not 0 <= run < self.spec.k:
                raise UserError(f"--runs {run}: {folder.path.name} has runs 0 to {self.spec.k - 1}")
        everything = range(self.spec.k) if generation.from_runs else self._runs
        self._all = trajectories(store, self.spec, folder, everything)
        self._wanted = [one for one in self._all if one.run in self._runs]
        if not self._wanted:
            raise UserError(f"{folder.path.name} has no valid trial in these runs; finish it first")
        if generation.from_runs and self.spec.k < 2:
            raise UserError("--samples-from-runs takes an execution with two runs or more (k)")
        self._done, self._gateways = self._read_kept()

    @property
    def costs(self) -> bool:
        """Whether somebody will be charged for the calls."""
        return any(member.kind == "openai" for member in self.spec.route.members)

    @property
    def already(self) -> int:
        """Trajectories that have been through: in an earlier generation, or in this one until it was interrupted."""
        return len(self._done)

    @property
    def wanted(self) -> int:
        """Trajectories in all."""
        return len(self._wanted)

    @property
    def finished(self) -> bool:
        """Whether all that could be asked was asked before. So it is where no trajectory gave a rule."""
        return not self._to_do()

    def price(self) -> Price:
        """Of what is still to be done."""
        return price_of(self._to_do(), self._generation)

    def make(self, max_rules: int | None, tell: Callable[[int, int], None]) -> Made:
        """Carries it out. `tell` gets how many trajectories are done, of how many. Raises XspecError."""
        to_do = self._to_do()
        failed: list[Analysed] = []
        done = self._done
        if to_do:
            self.kept.parent.mkdir(parents=True, exist_ok=True)

            def record(one: Analysed) -> None:
                (failed if one.error is not None else done).append(one)
                if one.error is None:
                    self._keep({"run": one.run, "task": one.task, "answer": one.answer})
                tell(len(done) + len(failed), len(self._wanted))

            def begun(execution_id: str) -> None:
                self._gateways.append(execution_id)
                self._keep({"gateway": execution_id})

            asyncio.run(analyse(self._store, self.spec, to_do, self._all, self._generation, record, begun))
        if failed and not done:
            raise XspecError(f"none of {len(failed)} trajectories could be analysed: {failed[0].error}")
        place = {(one.run, one.task): i for i, one in enumerate(self._wanted)}
        done.sort(key=lambda one: place[one.run, one.task])
        file = self._file(done, failed, max_rules)
        return Made(file, tuple(failed), found_flips(self.spec, self._store, self._wanted, done))

    def finish(self) -> None:
        """The guide is written: what was kept aside goes."""
        self.kept.unlink(missing_ok=True)

    def _to_do(self) -> list[Trajectory]:
        done = {(one.run, one.task) for one in self._done}
        return [one for one in self._wanted if (one.run, one.task) not in done]

    def _file(self, done: Sequence[Analysed], failed: Sequence[Analysed], max_rules: int | None) -> GuideFile:
        generation, spec = self._generation, self.spec
        passed = {(one.run, one.task): one.passed for one in self._wanted}
        spent = spent_by([ExecutionFolder(self._folder.path.parent / name) for name in self._gateways])
        accurate = generation.method == "accurate"
        asked = generation.asks_for_samples
        package = environments.entry(ENVIRONMENT).package
        return guide_file(
            merged_rules(done, passed, max_rules),
            done,
            generator=package,
            generator_version=environments.installed_version(environments.require(ENVIRONMENT), package),
            method=generation.method,
            samples=(generation.samples if asked else spec.k) if accurate else None,
            sampled=("model" if asked else "runs") if accurate else None,
            temperature=TEMPERATURE if asked else None,
            model=spec.route.members[0].model,
            benchmark=spec.benchmark.kind,
            benchmark_version=spec.benchmark.version,
            spec_id=spec.id,
            execution_id=self._folder.path.name,
            gateway_execution_ids=tuple(self._gateways),
            runs=self._runs,
            trajectories=len(self._wanted),
            failed_trajectories=len(failed) or None,
            max_rules=max_rules,
            simulated=any(member.kind == "rehearsal" for member in spec.route.members) or None,
            **asdict(spent),
        )

    # what an interrupted generation left

    def _settings(self) -> dict[str, Any]:
        return {
            "execution": self._folder.path.name,
            "runs": list(self._runs),
            "generation": asdict(self._generation),
        }

    def _read_kept(self) -> tuple[list[Analysed], list[str]]:
        try:
            data = self.kept.read_bytes()
        except FileNotFoundError:
            return [], []
        except OSError as error:
            raise self._unwritable(error) from None
        whole = data[: data.rfind(b"\n") + 1]
        if whole != data:  # a kill tore the last line
            write_whole(self.kept, whole)
        entries = [json.loads(line) for line in whole.splitlines()]
        if not entries or entries[0] != self._settings():
            raise UserError(
                f"{self.kept} was left by a generation with other settings; remove it, or take another -o"
            )
        done = [Analysed(e["run"], e["task"], e["answer"]) for e in entries[1:] if "answer" in e]
        return done, [e["gateway"] for e in entries[1:] if "gateway" in e]

    def _keep(self, entry: dict[str, Any]) -> None:
        fresh = not self.kept.exists()
        try:
            with self.kept.open("ab") as file:
                for one in (self._settings(), entry) if fresh else (entry,):
                    file.write(json.dumps(one).encode() + b"\n")
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError) as error:
            raise self._unwritable(error) from None

    def _unwritable(self, error: OSError) -> UserError:
        why = error.strerror
        return UserError(f"{self.kept}, where what is done is kept, can't be used: {why}; choose another -o")
