"""Fixtures that several rooms' tests share."""

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from xspec.benchmarks import environments
from xspec.experiment.arm_execution import trial_inputs
from xspec.rehearsal.behaviour import Player
from xspec.rehearsal.code import Block, as_reply
from xspec.rehearsal.faults import FaultDice, Place
from xspec.rehearsal.guide import coverage_of
from xspec.rehearsal.scripts import TaskScript
from xspec.spec.canonical import digest_of
from xspec.spec.members import RehearsalMember
from xspec.spec.models import ExperimentSpec
from xspec.spec.store import Store

os.environ["XSPEC_MLFLOW"] = "later"  # three seconds a command; tests of tracking ask for it themselves


LONG = (
    *("appworld/test_end_to_end.py", "guides/test_altk_loop.py", "sweep", "docs", "appworld", "experiment"),
    *("gateway", "tracking", "local", "security", "cli", "benchmarks", "stress", "replay"),
)
"""Rooms and files that take long, which begin first: what is short then fills all processes to the end.

The first two each make an environment, for which the other files that want it would otherwise wait.
"""


def spec_plain() -> dict[str, Any]:
    """A small spec against one OpenAI-compatible member."""
    return {
        "scheme": 1,
        "benchmark": {
            "kind": "agentdojo",
            "version": "v1.2.2",
            "split": "all",
            "tasks": ["banking.user_task_0", "slack.user_task_1"],
            "manifest": digest_of(b"manifest"),
        },
        "agent": {
            "kind": "tool_loop",
            "version": 1,
            "max_steps": 30,
            "tool_timeout_s": 60,
            "prompt": digest_of(b"prompt"),
        },
        "route": {
            "mode": "fixed",
            "members": [
                {
                    "kind": "openai",
                    "name": "main",
                    "base_url": "http://127.0.0.1:9/api",
                    "path": "/v1/chat/completions",
                    "model": "small-2026-01-01",
                    "api_key_env": "XSPEC_TEST_KEY",
                }
            ],
            "timeout_s": 120,
            "max_wait_s": 300,
            "retry": {
                "max_attempts": 3,
                "backoff_s": 1,
                "backoff_base": 2,
                "backoff_max_s": 60,
                "statuses": [429, 500, 502, 503],
                "timeouts": True,
                "connection_errors": True,
            },
        },
        "sampling": {"temperature": 0, "top_p": 1, "seed": 42, "max_tokens": 8192},
        "drift": {"served_model": "invalidate", "upstream": "invalidate", "fingerprint": "record"},
        "guide": {"kind": "none"},
        "k": 5,
    }


@pytest.fixture(scope="session")
def make_plain() -> Callable[[], dict[str, Any]]:
    """Makes the plain data of a valid spec, for fixtures of a wider scope."""
    return spec_plain


@pytest.fixture
def plain() -> dict[str, Any]:
    """Plain data of a valid spec, to be changed by the test."""
    return spec_plain()


@pytest.fixture
def spec(plain: dict[str, Any]) -> ExperimentSpec:
    """A valid spec."""
    return ExperimentSpec.model_validate_json(json.dumps(plain))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes long first; within a room, and among the others, the order stays."""
    here = Path(__file__).parent
    rank = {name: place for place, name in enumerate(LONG)}

    def place(item: pytest.Item) -> int:
        path = item.path.relative_to(here)
        return min(rank.get(name, len(rank)) for name in (path.as_posix(), path.parts[0]))

    items.sort(key=place)


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Callable[[Path], None]], Path]:
    """The folder of a name, made by the first process of the session that wants it; the others wait for it.

    Tests share it: they may read it and nothing else.
    """
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent  # each worker has a folder of its own in it

    def made(name: str, make: Callable[[Path], None]) -> Path:
        folder = shared / name
        with (shared / f"{name}.lock").open("w") as file:  # the lock goes with its process
            fcntl.flock(file, fcntl.LOCK_EX)
            if not folder.exists():
                making = shared / f"{name}.making"
                make(making)
                making.rename(folder)
        return folder

    return made


@pytest.fixture(scope="session")
def altk_environment() -> str:
    """The interpreter of the environment `altk`, which is made if it is not there (about 20 s of CPU); it is kept.

    Processes that want it at once wait for the one that makes it.
    """
    making = [sys.executable, "-m", "xspec", "env", "create", "altk"]
    done = subprocess.run(making, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no environment with ALTK-Evolve: {done.stderr.strip()}")
    return str(environments.interpreter(environments.require("altk")))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A test may skip where a user lacks something; continuous integration has it all, so there a skip is a failure."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("CI") and reporter is not None and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


class Intent:
    """What a rehearsal on a fixed route means each trial to come out as, played again without sockets and worlds."""

    def __init__(self, store: Store, spec: ExperimentSpec, solutions: Mapping[str, Any]) -> None:
        (member,) = spec.route.members
        assert isinstance(member, RehearsalMember)
        self._inputs = trial_inputs(store, spec)
        self._scripts = {
            task: TaskScript.of(task, {**solutions[task], "instruction": given.instruction})
            for task, given in self._inputs.items()
        }
        self._player, self._dice = Player(member.behaviour), FaultDice(member.model, member.faults)
        self._attempts = spec.route.retry.max_attempts

    def outcome(self, execution: str, run: int, task: str) -> str:
        """`pass`, `fail`, or `invalid` where the retries of a call are used up."""
        script, given = self._scripts[task], self._inputs[task]
        apis = frozenset(n for s in self._scripts.values() for call in s.calls for n in call.names)
        coverage = coverage_of(given.system, apis if script.by_code else given.tool_names)
        messages: list[dict[str, Any]] = []
        for step in range(1000):
            turn = self._player.turn(script, messages, execution, run, coverage)
            attempt = self._served(execution, run, task, step)
            if attempt is None:
                return "invalid"
            if turn.purpose == "give_up":
                return "fail"
            if turn.call is None:
                return "pass"
            place = Place(execution, run, task, step, attempt)
            if isinstance(turn.call, Block):
                code = self._dice.code(turn.call.text, place)
                messages.append({"role": "assistant", "content": as_reply(code)})
                if code == turn.call.text == script.calls[-1].text:
                    return "pass"
            else:
                function = {"name": turn.call.name, "arguments": self._dice.arguments(turn.call.text, place)}
                messages.append({"role": "assistant", "tool_calls": [{"function": function}]})
        raise AssertionError("the trial does not end")

    def _served(self, execution: str, run: int, task: str, step: int) -> int | None:
        """The number of the attempt that is answered; a 429 uses up none of those that the policy allows."""
        used = attempt = 0
        while used < self._attempts:
            fault = self._dice.fault(Place(execution, run, task, step, attempt))
            if fault == "none":
                return attempt
            assert fault != "other_model", "drift is not played here"
            attempt, used = attempt + 1, used + (fault != "too_many_requests")
        return None


@pytest.fixture(scope="session")
def intent() -> type[Intent]:
    """What a rehearsal intends, to be compared with what was judged."""
    return Intent
