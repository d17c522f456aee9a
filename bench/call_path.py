"""CPU of a model call on xspec's whole path against the plain SDK doing the same, and of the guard against a parse.

    python -m bench.call_path [--trials 48] [--repeats 7]

The 24 tools of AgentDojo's workspace, six calls a trial with a growing history, sixteen trials at once, the mock
server in another process. xspec's side is agent loop, route, guard, retries, pacing shared between
processes, and journal. Both run by turns in this one
process; prints JSON. Milliseconds are CPU time a call.
"""

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx2
import openai
import orjson

from xspec.agents.tool_loop import play
from xspec.agents.turns import Episode
from xspec.benchmarks.pool import WorkerPool
from xspec.records.journal import Journal, read_journal
from xspec.records.rows import Place
from xspec.route.address import address_of
from xspec.route.body import fixed_fields, opening
from xspec.route.client import Route
from xspec.route.conversation import Conversation, Pins, Tools, text_digest
from xspec.route.guard import SENDING, Guard, Sending
from xspec.route.keys import fingerprint
from xspec.route.pacing import Pacers
from xspec.route.reply import Reply
from xspec.route.stored import StoredSpec
from xspec.spec.canonical import canonical_bytes
from xspec.spec.models import ExperimentSpec

CALLS = 6
AT_ONCE = 16
KEY = "bench-key"
SYSTEM = "You are a careful assistant of a bank. " * 60
INSTRUCTION = "Please pay the bill in the file bill-december-2023.txt. " * 4
OBSERVATION = "2026-01-01 transfer of 100.00 to GB29NWBK60161331926819, subject: rent for January\n" * 30


def mock_server() -> None:
    """Answer every POST with the same small completion; print the port first."""
    message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "call_1",
                "type": "function",
                "function": {
                    "name": "search_emails",
                    "arguments": '{"recipient": "GB29NWBK60161331926819", "amount": 12}',
                },
            }
        ],
    }
    body = orjson.dumps(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": "m-1",
            "system_fingerprint": "fp_1",
            "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
            "usage": {"prompt_tokens": 9000, "completion_tokens": 30, "total_tokens": 9030},
        }
    )
    reply = (
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body) + body
    )

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(
                    line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")
                )
                await reader.readexactly(int(length.split(b":")[1]))
                writer.write(reply)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def main() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        print(server.sockets[0].getsockname()[1], flush=True)
        # The parent closes the pipe when it ends, and with it this process ends.
        await asyncio.to_thread(sys.stdin.read)

    asyncio.run(main())


async def tool_schemas() -> list[dict[str, Any]]:
    """The tools of a real suite, as its worker describes them."""
    async with WorkerPool("agentdojo", "v1.2.2", "workspace", {}, members=1, log=None) as pool:
        schemas: list[dict[str, Any]] = (await pool.describe())["toolsets"]["workspace"]
    return schemas


def spec_bytes(base_url: str) -> bytes:
    spec = {
        "scheme": 1,
        "benchmark": {
            "kind": "bench",
            "version": "1",
            "split": "all",
            "tasks": [f"bench.task_{i}" for i in range(92)],
            "manifest": "sha256:" + "0" * 64,
        },
        "agent": {
            "kind": "tool_loop",
            "version": 1,
            "max_steps": CALLS,
            "tool_timeout_s": 10,
            "prompt": "sha256:" + "0" * 64,
        },
        "route": {
            "mode": "fixed",
            "members": [
                {
                    "kind": "openai",
                    "name": "mock",
                    "base_url": base_url,
                    "path": "/chat/completions",
                    "model": "m-1",
                    "api_key_env": "BENCH_KEY",
                }
            ],
            "timeout_s": 60,
            "max_wait_s": 60,
            "retry": {
                "max_attempts": 3,
                "backoff_s": 1,
                "backoff_base": 2,
                "backoff_max_s": 8,
                "statuses": [500, 502, 503],
                "timeouts": True,
                "connection_errors": True,
            },
        },
        "sampling": {"temperature": 0, "seed": 7, "max_tokens": 512},
        "drift": {"served_model": "invalidate", "upstream": "invalidate", "fingerprint": "record"},
        "guide": {"kind": "none"},
        "k": 8,
    }
    return canonical_bytes(spec)


async def all_trials(trial: Callable[[int], Awaitable[None]], trials: int) -> float:
    """CPU milliseconds per call."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(number: int) -> None:
        async with gate:
            await trial(number)

    began = time.process_time()
    await asyncio.gather(*(one(number) for number in range(trials)))
    return 1000 * (time.process_time() - began) / (trials * CALLS)


async def plain(base_url: str, schemas: list[dict[str, Any]], trials: int) -> float:
    client = openai.AsyncOpenAI(api_key=KEY, base_url=base_url, max_retries=0)
    tools: Any = schemas

    async def trial(number: int) -> None:
        messages: list[Any] = [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": INSTRUCTION},
        ]
        for _ in range(CALLS):
            reply = await client.chat.completions.create(
                model="m-1",
                messages=messages,
                tools=tools,
                temperature=0,
                seed=7,
                max_tokens=512,
            )
            messages.append(reply.choices[0].message.model_dump(exclude_none=True))
            messages.append({"role": "tool", "tool_call_id": "call_1", "content": OBSERVATION})

    async with client:
        await trial(0)
        return await all_trials(trial, trials)


class StillWorld:
    """A world that costs nothing: what is measured is the way to and from the model."""

    async def act(self, action: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        return {"content": OBSERVATION, "error": False}


async def through_xspec(base_url: str, schemas: list[dict[str, Any]], trials: int, folder: Path) -> float:
    """The same calls by the tool loop, the guarded route and the journal."""
    data = spec_bytes(base_url)
    path = folder / "spec.json"
    path.write_bytes(data)
    tools = Tools(schemas)
    names = tuple(schema["function"]["name"] for schema in schemas)
    pins = Pins(text_digest(SYSTEM), text_digest(INSTRUCTION), tools.digest)
    agent = ExperimentSpec.model_validate_json(data).agent
    journal = Journal(folder / f"journal-{time.monotonic_ns()}.jsonl")
    pacers = Pacers(AT_ONCE, folder / "pace")
    route = Route(data, path, environ={"BENCH_KEY": KEY}, record=journal.append, pacers=pacers)

    async def trial(number: int) -> None:
        conversation = Conversation(SYSTEM, INSTRUCTION, tools)

        async def ask(place: Place) -> Reply:
            return await route.call(conversation, pins, place)

        begin = Place(0, f"bench.task_{number}", 0, 0)
        await play(agent, Episode(INSTRUCTION, conversation, names, StillWorld(), ask, begin, journal.append))

    with journal:
        await trial(0)
        cost = await all_trials(trial, trials)
    await route.aclose()
    pacers.close()
    assert sum(1 for _ in read_journal(journal.path, ("attempt",))) == CALLS * (trials + 1)
    return cost


def guard_cost(schemas: list[dict[str, Any]], folder: Path) -> dict[str, float]:
    """Microseconds of one check and of one parse of the same body, about 39 KB."""
    data = spec_bytes("http://127.0.0.1:9/v1")
    path = folder / "guarded.json"
    path.write_bytes(data)
    spec = ExperimentSpec.model_validate_json(data)
    address = address_of("http://127.0.0.1:9/v1", "/chat/completions")
    guard = Guard(StoredSpec(data, path), spec, {"mock": lambda place: address}, {"mock": fingerprint(KEY)})
    tools = Tools(schemas)
    conversation = Conversation(SYSTEM, INSTRUCTION, tools)
    call = {
        "id": "call_1",
        "type": "function",
        "function": {"name": "search_emails", "arguments": '{"amount": 12}'},
    }
    while (
        len(body := conversation.body(opening(fixed_fields(spec.route.members[0], spec.sampling)))) < 39_000
    ):
        conversation.add({"role": "assistant", "content": None, "tool_calls": [call]})
        conversation.add({"role": "tool", "tool_call_id": "call_1", "content": OBSERVATION})
    headers = {
        "accept": "application/json",
        "accept-encoding": "identity",
        "connection": "keep-alive",
        "user-agent": "xspec",
        "authorization": f"Bearer {KEY}",
        "content-type": "application/json",
        "x-stainless-retry-count": "0",
    }
    request = httpx2.Request("POST", address.url, headers=headers, content=body, extensions={"timeout": {}})
    pins = Pins(text_digest(SYSTEM), text_digest(INSTRUCTION), tools.digest)
    time.sleep(0.15)  # past the moment in which a fresh spec file is read again at every call
    token = SENDING.set(Sending(Place(0, "bench.task_0", 0, 0), 0, pins))
    check = _best(lambda: guard.check(request, body))
    SENDING.reset(token)
    parse = _best(lambda: orjson.loads(body))
    return {"body_bytes": len(body), "guard_us": check, "loads_us": parse, "ratio": check / parse}


def _best(work: Callable[[], object], rounds: int = 30, each: int = 40) -> float:
    """Median over rounds of the mean of `each` repetitions, in microseconds of CPU."""
    times = []
    for _ in range(rounds):
        began = time.process_time()
        for _ in range(each):
            work()
        times.append((time.process_time() - began) / each * 1e6)
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--trials", type=int, default=32)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--serve", action="store_true", help="be the mock server")
    options = parser.parse_args()
    if options.serve:
        mock_server()
        return
    schemas = asyncio.run(tool_schemas())
    command = [sys.executable, "-m", "bench.call_path", "--serve"]
    with (
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server,
        tempfile.TemporaryDirectory() as folder,
    ):
        assert server.stdout is not None
        base_url = f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
        runs = [
            (
                asyncio.run(plain(base_url, schemas, options.trials)),
                asyncio.run(through_xspec(base_url, schemas, options.trials, Path(folder))),
            )
            for _ in range(options.repeats)
        ]
        guard = guard_cost(schemas, Path(folder))
        assert server.stdin is not None
        server.stdin.close()
    plain_ms = statistics.median(run[0] for run in runs)
    xspec_ms = statistics.median(run[1] for run in runs)
    report = {
        "tools_bytes": len(Tools(schemas).wire),
        "calls": options.trials * CALLS,
        "plain_ms": plain_ms,
        "xspec_ms": xspec_ms,
        "ratio": statistics.median(run[1] / run[0] for run in runs),
        "ratios": [round(run[1] / run[0], 3) for run in runs],
        "guard": guard,
    }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
