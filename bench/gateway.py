"""What the gateway costs: CPU of a call through it against a direct one, the latency it adds, and its ledger's pace.

    python -m bench.gateway [--trials 24] [--repeats 9]

A harness calls with the plain async openai client, as in bench.call_path: the 24 tools of AgentDojo's workspace and a
history that grows over six calls. The provider is a mock in a process of its own, the gateway another one. CPU of a
call through the gateway is that of harness and gateway together, with all processes on one core. Latency is that of 16
callers at once of a provider that takes 0.2 to 1 s, which are taken off. Prints JSON; CPU in milliseconds a call.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import openai
import orjson
import psutil

from bench.call_path import AT_ONCE, CALLS, INSTRUCTION, KEY, OBSERVATION, SYSTEM, all_trials, tool_schemas
from bench.mock_provider import ARGUMENTS, LONGEST_S, MODEL, SLOW, mock_provider
from xspec.experiment.gateway_execution import open_gateway
from xspec.experiment.gateway_spec import compile_gateway
from xspec.gateway.conversations import Conversations
from xspec.gateway.ledger import Ledger, Request
from xspec.records.executions import executions_of
from xspec.records.journal import Journal, read_journal
from xspec.records.rows import AttemptEnded, AttemptStarted
from xspec.route.reply import Reply
from xspec.spec.canonical import digest_of
from xspec.spec.compose import compose
from xspec.spec.config import validate_config
from xspec.spec.store import Store


def gateway(port: int, folder: str) -> None:
    """The gateway in its own process; prints address and token first. Ends with its stdin."""

    async def main() -> None:
        overrides = [
            "benchmark=external",
            "provider=openai_compatible",
            f"provider.base_url=http://127.0.0.1:{port}/v1",
            f"provider.model={MODEL}",
            "provider.api_key_env=BENCH_KEY",
        ]
        store = Store(folder)
        compiled = await compile_gateway(validate_config(compose(overrides)), store, "fill")
        async with open_gateway(store, compiled) as opened:
            print(json.dumps([opened.base_url, opened.token]), flush=True)
            await asyncio.to_thread(sys.stdin.read)

    asyncio.run(main())


@contextmanager
def process(*arguments: str, **variables: str) -> Iterator[tuple[psutil.Process, str]]:
    """One of the above in a process of its own, and the line it says first."""
    command = [sys.executable, "-m", "bench.gateway", *arguments]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **variables},
    ) as started:
        assert started.stdout is not None
        assert started.stdin is not None
        yield psutil.Process(started.pid), started.stdout.readline()
        started.stdin.close()


class Harness:
    """A program that calls models by itself."""

    def __init__(self, client: openai.AsyncOpenAI, schemas: list[dict[str, Any]]) -> None:
        self._client = client
        self._schemas: Any = schemas

    async def converse(self, number: int, *, stream: bool, tools: bool = True) -> None:
        messages: list[Any] = [
            {"role": "system", "content": SYSTEM if tools else "Be brief."},
            {
                "role": "user",
                "content": f"{INSTRUCTION if tools else 'Hello'} {number} {time.monotonic_ns()}",
            },
        ]
        extra: dict[str, Any] = {"tools": self._schemas} if tools else {}
        for _ in range(CALLS):
            reply: Any = await self._client.chat.completions.create(
                model=MODEL, messages=messages, temperature=0, stream=stream, **extra
            )
            if stream:
                arguments = ""
                async for chunk in reply:
                    for delta in (chunk.choices[0].delta.tool_calls or ()) if chunk.choices else ():
                        arguments += delta.function.arguments or ""
                function = {"name": "search_emails", "arguments": arguments}
                call = {"id": "call_1", "type": "function", "function": function}
                message = {"role": "assistant", "content": None, "tool_calls": [call]}
            else:
                message = reply.choices[0].message.model_dump(exclude_none=True)
            messages.append(message)
            messages.append(
                {"role": "tool", "tool_call_id": "call_1", "content": OBSERVATION if tools else "ok"}
            )


@asynccontextmanager
async def harness(base_url: str, key: str, schemas: list[dict[str, Any]]) -> AsyncIterator[Harness]:
    async with openai.AsyncOpenAI(api_key=key, base_url=base_url, max_retries=0) as client:
        one = Harness(client, schemas)
        await one.converse(-1, stream=False)
        yield one


async def cpu(
    where: tuple[str, str],
    schemas: list[dict[str, Any]],
    trials: int,
    serving: psutil.Process | None,
    **how: Any,
) -> float:
    """CPU milliseconds a call, of this process and of the one that serves it."""
    async with harness(*where, schemas) as one:
        before = _cpu_s(serving)
        own = await all_trials(lambda number: one.converse(number, **how), trials)
        return own + 1000 * (_cpu_s(serving) - before) / (trials * CALLS)


async def latency(
    where: tuple[str, str], schemas: list[dict[str, Any]], calls: int = 800
) -> tuple[float, float]:
    """What a call takes beyond the provider's own time, 16 callers at once: 99th percentile and median, milliseconds.

    The callers begin one after the other within the time that a call takes. They speak HTTP as lightly as can be,
    lest their own queue be measured.
    """
    messages = [{"role": "system", "content": SYSTEM}, {"role": "tool", "content": OBSERVATION * 8}]
    url = httpx2.URL(f"{where[0]}/chat/completions")
    requests = []
    for number in range(calls):
        asked = [*messages, {"role": "user", "content": f"{number}"}]
        body = orjson.dumps({"model": MODEL, "user": SLOW, "messages": asked, "tools": schemas})
        head = (
            f"POST {url.path} HTTP/1.1\r\nhost: {url.host}:{url.port}\r\nauthorization: Bearer {where[1]}\r\n"
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        requests.append(head.encode() + body)
    took: list[float] = []
    waiting = iter(requests)

    async def work(caller: int) -> None:
        await asyncio.sleep(LONGEST_S * caller / AT_ONCE)
        reader, writer = await asyncio.open_connection(url.host, url.port)
        for request in waiting:
            began = time.perf_counter()
            writer.write(request)
            said = (await reader.readuntil(b"\r\n\r\n")).lower()
            reply = await reader.readexactly(int(said.partition(b"content-length:")[2].split()[0]))
            seconds = time.perf_counter() - began
            took.append(seconds - float(orjson.loads(reply)["id"].removeprefix("slept ")))
        writer.close()
        await writer.wait_closed()

    await asyncio.gather(*(work(caller) for caller in range(AT_ONCE)))
    took.sort()
    return 1000 * took[int(0.99 * len(took))], 1000 * statistics.median(took)


def ledger_pace(schemas: list[dict[str, Any]], folder: Path, calls: int = 3000) -> dict[str, float]:
    """Seconds in which the rows of 500 calls are made and written, histories as long as the harness's."""
    journal = Journal(folder / "ledger.jsonl", ("a-secret-that-is-nowhere", KEY))
    conversations = Conversations()
    ledger = Ledger(journal.append, journal.append, lambda data: "")
    call = {"id": "call_1", "type": "function", "function": {"name": "search_emails", "arguments": ARGUMENTS}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    began = time.process_time()
    for number in range(calls // CALLS):
        messages: list[Any] = [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": f"{number}"},
        ]
        for step in range(CALLS):
            digest = digest_of(orjson.dumps([messages, schemas]))
            seen = conversations.see(None, "order", digest, messages)
            place = {name: getattr(seen.place, name) for name in ("run", "task", "take", "step", "call")}
            where: dict[str, Any] = {**place, "attempt": 0, "member": "main", "at": time.time()}
            journal.append(
                AttemptStarted(**where, spec_id="xs-0", request_digest=digest, concurrency=AT_ONCE)
            )
            journal.append(
                AttemptEnded(
                    **where,
                    status=200,
                    error=None,
                    waited_s=0,
                    latency_s=1,
                    prompt_tokens=9,
                    completion_tokens=3,
                )
            )
            reply = Reply(message, "tool_calls", 9, 3, 1, 0.0, digest, MODEL, "main")
            request = Request("chat_completions", seen, time.time(), 39_000, tools=schemas)
            added = conversations.over(seen, message)
            ledger.write(request, "answered", status=200, latency_s=1, reply=reply, added=added)
            messages = [
                *messages,
                message,
                {"role": "tool", "tool_call_id": "call_1", "content": OBSERVATION},
            ]
            assert step == seen.place.step
    journal.close()
    cost = time.process_time() - began
    for kind in ("attempt_started", "attempt", "step", "call"):
        assert sum(1 for _ in read_journal(journal.path, (kind,))) == calls
    return {"calls": calls, "seconds_for_500": cost / calls * 500}


@contextmanager
def on_one_core() -> Iterator[None]:
    """One core for this process and its children, where the system can.

    Two cores may be two threads of one: then either is slower while the other is busy, and a harness would cost
    more beside a gateway than alone.
    """
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    me = psutil.Process()

    def move(cores: set[int]) -> None:
        for process in (me, *me.children(recursive=True)):
            for thread in process.threads():
                os.sched_setaffinity(thread.id, cores)

    move({min(before)})
    try:
        yield
    finally:
        move(before)


def ratios(
    direct: tuple[str, str],
    through: tuple[str, str],
    serving: psutil.Process,
    schemas: list[dict[str, Any]],
    options: argparse.Namespace,
    **how: Any,
) -> dict[str, Any]:
    """Direct and through the gateway by turns."""
    runs = [
        (
            asyncio.run(cpu(direct, schemas, options.trials, None, **how)),
            asyncio.run(cpu(through, schemas, options.trials, serving, **how)),
        )
        for _ in range(options.repeats)
    ]
    return {
        "direct_ms": statistics.median(run[0] for run in runs),
        "gateway_ms": statistics.median(run[1] for run in runs),
        "ratio": statistics.median(run[1] / run[0] for run in runs),
        "ratios": [round(run[1] / run[0], 3) for run in runs],
    }


def latencies(
    direct: tuple[str, str], through: tuple[str, str], schemas: list[dict[str, Any]]
) -> dict[str, float]:
    """Of both ways, and what the gateway adds to the 99th percentile."""
    direct_p99, direct_median = asyncio.run(latency(direct, schemas))
    gateway_p99, gateway_median = asyncio.run(latency(through, schemas))
    return {
        "direct_p99_ms": direct_p99,
        "gateway_p99_ms": gateway_p99,
        "added_p99_ms": gateway_p99 - direct_p99,
        "added_median_ms": gateway_median - direct_median,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--trials", type=int, default=24)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--provider", action="store_true", help="be the provider")
    parser.add_argument("--gateway", nargs=2, metavar=("PORT", "STORE"), help="be the gateway")
    options = parser.parse_args()
    if options.provider:
        return mock_provider()
    if options.gateway:
        return gateway(int(options.gateway[0]), options.gateway[1])
    schemas = asyncio.run(tool_schemas())
    with tempfile.TemporaryDirectory() as folder, process("--provider") as (_, port):
        with process("--gateway", port.strip(), folder, BENCH_KEY=KEY) as (serving, said):
            direct = f"http://127.0.0.1:{int(port)}/v1", KEY
            base_url, token = json.loads(said)
            through = base_url, token
            measured = direct, through, serving, schemas, options
            with on_one_core():
                report: dict[str, Any] = {
                    "plain": ratios(*measured, stream=False),
                    "streamed": ratios(*measured, stream=True),
                    "small_plain": ratios(*measured, stream=False, tools=False),
                }
            report["latency"] = latencies(direct, through, schemas)
            report["ledger"] = ledger_pace(schemas, Path(folder))
        (execution,) = executions_of(Store(folder))
        asked = sum(1 for _ in execution.rows("call"))
        assert sum(1 for _ in execution.rows("attempt")) == sum(1 for _ in execution.rows("step")) == asked
    report["calls"] = asked
    print(json.dumps(report, indent=2))
    return None


def _cpu_s(process: psutil.Process | None) -> float:
    if process is None:
        return 0.0
    times = process.cpu_times()
    return float(times.user + times.system)


if __name__ == "__main__":
    main()
