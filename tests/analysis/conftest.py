"""The slow reference, and outcome tables and trajectories to hold against it."""

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from xspec.analysis.trajectory import EncodedRuns, Event


def load_reference() -> ModuleType:
    """The module beside this file; tests are no package, so it has no import path."""
    path = Path(__file__).with_name("reference.py")
    spec = importlib.util.spec_from_file_location("analysis_reference", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def reference() -> ModuleType:
    """Plain loops over plain lists."""
    return load_reference()


def random_outcomes(
    random: np.random.Generator, runs: int, tasks: int, holes: float = 0.1
) -> np.ndarray[Any, Any]:
    """A table of outcome codes with pass rates of their own by task; some trials missing, some invalid."""
    passes = random.random((runs, tasks)) < random.beta(1.5, 0.7, tasks)
    table = np.where(passes, 3, 2)
    return np.where(random.random(table.shape) < holes, random.integers(0, 2, table.shape), table)


@pytest.fixture
def outcomes_of() -> Any:
    return random_outcomes


def random_walks(
    random: np.random.Generator,
    tasks: int,
    runs: int,
    hazard: list[float],
    event: float,
    effect: float,
) -> EncodedRuns:
    """Trials of equal length that leave the common prefix for good, at each step with its hazard.

    A visible event comes in the observation, a hidden one in the call, each with chance `event`; only after a visible
    one does the trial part with the further chance `effect`.
    """
    rows, steps = tasks * runs, len(hazard)
    hidden = (random.random((rows, steps)) < event) * int(Event.HIDDEN)
    visible = (random.random((rows, steps)) < event) * int(Event.VISIBLE)
    seen = np.zeros((rows, steps), dtype=bool)
    seen[:, 1:] = visible[:, :-1] > 0
    leaves = (random.random((rows, steps)) < np.array(hazard)) | (
        seen & (random.random((rows, steps)) < effect)
    )
    left = np.maximum.accumulate(leaves, axis=1)
    task = np.repeat(np.arange(tasks), runs)
    return EncodedRuns(
        task=task,
        run=np.tile(np.arange(runs), tasks),
        steps=np.full(rows, steps),
        prefixes=np.where(left, tasks + np.arange(rows)[:, np.newaxis], task[:, np.newaxis]),
        calls=np.zeros((rows, 0), dtype=np.int64),
        chain_length=np.zeros(rows, dtype=np.int64),
        call_events=hidden,
        observation_events=visible,
    )


@pytest.fixture
def walks_of() -> Any:
    return random_walks
