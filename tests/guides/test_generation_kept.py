"""What a generation leaves for the next: no rule as an outcome, what was done before Ctrl-C. No library is asked."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from xspec.__main__ import main
from xspec.benchmarks import environments
from xspec.experiment import generation
from xspec.experiment.generate_guide import Analysed
from xspec.experiment.trajectories import Trajectory

NOTHING = {"guidelines": [], "steps": [], "scorable": 1}
LOOP = ["loop", "benchmark=choices", "benchmark.limit=2", "k=1", "provider.faults.latency_s=0"]


class Analyzer:
    """Stands for the analysis; `asked` has the tasks of each. It gives no rule, and is cut off before task `cut`."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.cut: int | None = None

    async def __call__(self, store: Any, spec: Any, wanted: Sequence[Trajectory], *rest: Any) -> None:
        record: Callable[[Analysed], None] = rest[2]
        self.asked.append([one.task for one in wanted])
        for place, one in enumerate(wanted):
            if place == self.cut:
                raise KeyboardInterrupt
            record(Analysed(one.run, one.task, NOTHING))


@pytest.fixture
def analyzer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Analyzer:
    analyzer = Analyzer()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(generation, "analyse", analyzer)
    monkeypatch.setattr(environments, "require", lambda name: tmp_path)
    monkeypatch.setattr(environments, "installed_version", lambda folder, package: "1.7.1")
    return analyzer


def test_no_rule_is_an_outcome_that_is_kept(analyzer: Analyzer, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        assert main(LOOP) == 1
        err = capsys.readouterr().err
        assert "no trajectory gave a rule" in err
        assert "remove it or choose another -o" in err
    assert analyzer.asked == [["plain.0", "plain.1"]]
    assert "nothing is sent" in err
    assert "going on where it was interrupted" not in err
    assert main([*LOOP, "--samples", "7"]) == 1
    assert len(analyzer.asked) == 2


def test_an_interrupted_generation_names_the_loop_that_goes_on(
    analyzer: Analyzer, capsys: pytest.CaptureFixture[str]
) -> None:
    analyzer.cut = 1
    assert main(LOOP) == 130
    said = capsys.readouterr().err.splitlines()[-1]
    assert said == (
        "xspec: interrupted; 1 of 2 trajectories done and kept; go on with python -m xspec " + " ".join(LOOP)
    )
    analyzer.cut = None
    assert main(LOOP) == 1
    assert analyzer.asked == [["plain.0", "plain.1"], ["plain.1"]]


def test_an_interrupted_baseline_names_the_loop_too(
    analyzer: Analyzer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from xspec.cli import loop
    from xspec.experiment.execute import SweepEnd

    execute = loop.execute

    def interrupted(*arguments: Any) -> SweepEnd:
        end = execute(*arguments)
        end.arms[0].complete = False
        return SweepEnd(end.arms, None, True)

    monkeypatch.setattr(loop, "execute", interrupted)
    assert main(LOOP) == 130
    assert f"interrupted; go on with python -m xspec {' '.join(LOOP)}\n" in capsys.readouterr().err
