"""Small simulated models and tasks, and a server inside the test's own event loop."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from xspec.rehearsal.address import member_key
from xspec.rehearsal.config import RehearsalConfig
from xspec.rehearsal.scripts import TaskScript
from xspec.rehearsal.simulator import Simulator
from xspec.rehearsal.wire import Connection

BEHAVIOUR = {
    "unstable_tasks": 0.0,
    "hopeless_tasks": 0.0,
    "flip_alpha": 2.0,
    "flip_beta": 3.0,
    "detour": 0.0,
    "guide_effect": 0.5,
    "replan": 0.0,
    "difficulty_seed": 1,
}
FAULTS = {
    "too_many_requests": 0.0,
    "server_error": 0.0,
    "stall": 0.0,
    "reset": 0.0,
    "truncated_json": 0.0,
    "other_model": 0.0,
    "garbled_arguments": 0.0,
    "retry_after_s": 0.25,
    "stall_s": 0.3,
    "latency_s": 0.0,
}
NAMES = ("get_balance", "send_money", "read_file", "search_files", "update_user", "list_users", "send_money")


@pytest.fixture
def behaviour() -> Callable[..., dict[str, Any]]:
    """Behaviour settings without errors, but for what is asked for."""
    return lambda **changes: {**BEHAVIOUR, **changes}


@pytest.fixture
def faults() -> Callable[..., dict[str, Any]]:
    """Fault settings without faults, but for what is asked for."""
    return lambda **changes: {**FAULTS, **changes}


@pytest.fixture
def member() -> Callable[..., dict[str, Any]]:
    """A member's plain settings, by changes to behaviour and faults together."""

    def make(model: str = "rehearsal-a", **changes: Any) -> dict[str, Any]:
        behaviour = {**BEHAVIOUR, **{name: changes[name] for name in changes if name in BEHAVIOUR}}
        faults = {**FAULTS, **{name: changes[name] for name in changes if name in FAULTS}}
        return {"model": model, "behaviour": behaviour, "faults": faults}

    return make


def plain_task(number: int) -> dict[str, Any]:
    """A solution of 0 to 6 calls."""
    calls = [{"name": name, "arguments": {"n": i // 2}} for i, name in enumerate(NAMES[: number % 7])]
    commit = max(0, len(calls) - 1 - number % 2)
    return {
        "instruction": f"Do thing {number}.",
        "calls": calls,
        "answer": f"done {number}",
        "commit": commit,
    }


@pytest.fixture
def tasks() -> dict[str, dict[str, Any]]:
    """Plain solutions by task id."""
    return {f"suite.task_{number}": plain_task(number) for number in range(21)}


@pytest.fixture
def scripts(tasks: Mapping[str, dict[str, Any]]) -> list[TaskScript]:
    return [TaskScript.of(task, plain) for task, plain in tasks.items()]


def plain_code_task(number: int) -> dict[str, Any]:
    """A solution of 1 to 6 blocks of code; every other task has a detour."""
    names = NAMES[: number % 6]
    blocks = [{"code": f"n = {i}\nprint(apis.bank.{name}(n=n // 2))"} for i, name in enumerate(names)]
    return {
        "instruction": f"Code thing {number}.",
        "calls": [*blocks, {"code": f'apis.supervisor.complete_task(answer="{number}", status="success")'}],
        "answer": "",
        "commit": len(blocks) - (number % 2),
        "give_up": {"code": 'apis.supervisor.complete_task(status="fail")'},
        **({"detour": {"code": "print(apis.bank.list_users())"}} if number % 2 else {}),
    }


@pytest.fixture
def code_scripts() -> list[TaskScript]:
    """Solutions by blocks of code."""
    return [TaskScript.of(f"code.task_{number}", plain_code_task(number)) for number in range(18)]


@pytest.fixture
def tools() -> list[dict[str, Any]]:
    """The tool schemas a request offers."""
    return [{"type": "function", "function": {"name": name, "parameters": {}}} for name in sorted(set(NAMES))]


Served = Callable[..., AbstractAsyncContextManager[tuple[Simulator, str, int]]]


@pytest.fixture
def served(tasks: Mapping[str, dict[str, Any]]) -> Served:
    """`async with served(member) as (simulator, member key, port)`: a real socket in this event loop."""

    @asynccontextmanager
    async def serve(plain: dict[str, Any]) -> AsyncIterator[tuple[Simulator, str, int]]:
        key = member_key(plain)
        simulator = Simulator(RehearsalConfig.of({"members": {key: plain}, "tasks": dict(tasks)}))
        server = await asyncio.get_running_loop().create_server(
            lambda: Connection(simulator.reply, simulator.tally.other), "127.0.0.1", 0
        )
        try:
            yield simulator, key, server.sockets[0].getsockname()[1]
        finally:
            server.close()

    return serve
