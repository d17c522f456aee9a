"""What a gateway execution leaves in the views, and that they agree with the report."""

import asyncio
from typing import Any

import openai
import pytest

from xspec.cli.query import run_query
from xspec.report.gateway import gateway_data, gateway_figures, gateway_lines
from xspec.tracking.project import project_tables_of

MODEL = "small-2026-01-01"


def rows_of(kit: Any, sql: str) -> list[dict[str, Any]]:
    project_tables_of(kit.store)
    names, rows = run_query(kit.store, sql)
    return [dict(zip(names, row, strict=True)) for row in rows]


def metrics_of(kit: Any) -> dict[str, float]:
    return {
        row["name"]: row["value"] for row in rows_of(kit, "SELECT name, value FROM metrics WHERE run IS NULL")
    }


def test_a_call_is_a_row_and_the_figures_agree_with_the_report(kit: Any) -> None:
    def answer(n: int, asked: Any) -> Any:
        if n == 0:
            return kit.Reply({"error": {}}, 500)
        return kit.Reply(kit.completion(usage=None)) if n == 3 else kit.Reply()

    async def run() -> None:
        async with kit.both(answer, enforce="fill") as (_, _g, client):
            for temperature, more in ((0.5, {}), (0, {}), (0, {"x-stainless-retry-count": "1"})):
                await client.chat.completions.create(
                    model=MODEL,
                    messages=kit.MESSAGES,
                    temperature=temperature,
                    extra_headers={"x-xspec-trial": "2/pay", **more},
                )
            stream = await client.chat.completions.create(
                model=MODEL, messages=[{"role": "user", "content": "s"}]
            )
            del stream

    asyncio.run(run())
    first, second, third, fourth = rows_of(kit, "SELECT * FROM calls ORDER BY started_at")
    assert (first["run"], first["task"], first["step"], first["call"]) == (2, "pay", 0, 0)
    assert (first["by"], first["endpoint"], first["streamed"]) == ("header", "chat_completions", False)
    assert (first["ended"], first["status"], first["again"]) == ("answered", 200, None)
    assert (first["changes"], first["contradicted"]) == (4, ["temperature"])
    assert (second["changes"], second["contradicted"]) == (3, [])
    assert (third["again"], third["asked_digest"]) == ("retry", second["asked_digest"])
    assert (fourth["by"], fourth["task"], fourth["observed"]) == ("order", "conversation-1", ["messages"])
    assert first["latency_s"] > 0
    assert rows_of(kit, "SELECT * FROM trials") == rows_of(kit, "SELECT * FROM runs") == []
    (execution,) = rows_of(kit, "SELECT * FROM executions")
    assert (execution["finished"], execution["gateway_ended"]) == (True, "done")
    assert execution["began_at"] <= execution["started_at"] < execution["ended_at"]
    figures, data = metrics_of(kit), gateway_data(gateway_figures(kit.store, kit.execution()))
    assert "abandoned_attempts" not in figures, "they belong to calls that are over"
    assert (figures["calls"], figures["attempts"], figures["retry_count"]) == (4, 5, 1)
    assert (figures["harness_retries"], figures["calls_contradicting"]) == (1, 1)
    same = {"calls": "calls", "attempts": "attempts", "harness_retries": "harness_retries"}
    same |= {"prompt_tokens": "prompt_tokens", "replies_uncounted": "without_usage"}
    assert {name: figures[name] for name in same} == {name: data[other] for name, other in same.items()}
    assert (figures["total_tokens"], figures["replies_uncounted"]) == (3 * 14, 1)


def test_tokens_that_no_reply_counted_are_unknown_everywhere(kit: Any) -> None:
    async def run() -> None:
        async with kit.both(lambda n, asked: kit.Reply(kit.completion(usage=None))) as (_, _g, client):
            await client.chat.completions.create(model=MODEL, messages=kit.MESSAGES)

    asyncio.run(run())
    figures, found = metrics_of(kit), gateway_figures(kit.store, kit.execution())
    assert "total_tokens" not in figures
    assert figures["replies_uncounted"] == 1
    assert gateway_data(found)["prompt_tokens"] is None
    assert "tokens unknown: 1 reply without usage" in "\n".join(gateway_lines(found))


def test_a_count_that_no_reply_gave_is_no_metric(kit: Any) -> None:
    usage = {"prompt_tokens": -5, "completion_tokens": 3}

    async def run() -> None:
        async with kit.both(lambda n, asked: kit.Reply(kit.completion(usage=usage))) as (_, _g, client):
            await client.chat.completions.create(model=MODEL, messages=kit.MESSAGES)

    asyncio.run(run())
    figures = metrics_of(kit)
    assert "prompt_tokens" not in figures
    assert figures["completion_tokens"] == 3


def test_a_gateway_that_was_not_closed_is_not_finished(kit: Any) -> None:
    """Cut off behind what was sent, as by a kill."""

    async def run() -> None:
        async with kit.both(lambda n, asked: kit.Reply()) as (_, _g, client):
            await client.chat.completions.create(model=MODEL, messages=kit.MESSAGES)

    asyncio.run(run())
    path = kit.execution().journal_path(1)
    started = path.read_bytes().index(b"\n") + 1
    path.write_bytes(path.read_bytes()[:started])
    (execution,) = rows_of(kit, "SELECT finished, gateway_ended, ended_at FROM executions")
    assert execution == {"finished": False, "gateway_ended": None, "ended_at": None}
    figures = metrics_of(kit)
    assert (figures["attempts"], figures["unreturned_attempts"], figures["calls"]) == (1, 1, 0)
    assert "not closed in order" in "\n".join(gateway_lines(gateway_figures(kit.store, kit.execution())))


def test_a_stopped_route_is_told_by_the_table(kit: Any) -> None:
    async def run() -> None:
        async with kit.both(lambda n, asked: kit.Reply({"error": {}}, 401)) as (_, _g, client):
            with pytest.raises(openai.BadRequestError):
                await client.chat.completions.create(model=MODEL, messages=kit.MESSAGES)

    asyncio.run(run())
    (execution,) = rows_of(kit, "SELECT finished, gateway_ended FROM executions")
    assert execution == {"finished": True, "gateway_ended": "stopped"}
    assert [row["ended"] for row in rows_of(kit, "SELECT ended FROM calls")] == ["stopped"]
