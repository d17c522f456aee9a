"""Drift: what a reply comes from, against what was pinned or answered first."""

import asyncio
from typing import Any

import pytest

from xspec.route.drift import is_dated

INVALIDATE = {"served_model": "invalidate", "upstream": "invalidate", "fingerprint": "invalidate"}


def replies(lab: Any, *bodies: dict[str, Any], **setting: Any) -> list[Any]:
    """The replies to calls answered by completions with these fields; `headers` in them become headers."""

    async def run() -> list[Any]:
        raw = [
            lab.http(
                200, lab.completion(**{k: v for k, v in b.items() if k != "headers"}), **b.get("headers", {})
            )
            for b in bodies
        ]
        async with lab.routed(lab.in_turn(*raw), **setting) as (_, route):
            return [await lab.call(route) for _ in bodies]

    return asyncio.run(run())


def test_the_first_reply_settles_the_reference(lab: Any) -> None:
    first, same, other = replies(lab, {"model": "m-1-x"}, {"model": "m-1-x"}, {"model": "m-2"})
    assert (first.drift, same.drift) == ([], [])
    assert other.drift == ["served_model: m-1-x -> m-2"]
    assert lab.settled == [("a", "served_model", "m-1-x")]
    assert lab.ended[2].drift == other.drift
    assert [row.served_model for row in lab.ended] == ["m-1-x", "m-1-x", "m-2"]


def test_an_expected_model_is_the_reference_from_the_start(lab: Any) -> None:
    (wrong,) = replies(lab, {"model": "m-2"}, member={"expect_served": "m-1"})
    assert wrong.drift == ["served_model: m-1 -> m-2"]
    assert lab.settled == []


def test_an_alias_answered_by_a_dated_id_is_that_id(lab: Any) -> None:
    got = replies(
        lab,
        {"model": "gpt-x-2026-08-06"},
        {"model": "gpt-x-2026-08-06"},
        {"model": "gpt-x-2026-11-20"},
        member={"model": "gpt-x", "expect_served": "gpt-x"},
    )
    assert [reply.drift for reply in got] == [[], [], ["served_model: gpt-x-2026-08-06 -> gpt-x-2026-11-20"]]
    assert lab.settled == [("a", "served_model", "gpt-x-2026-08-06")]


@pytest.mark.parametrize(
    ("alias", "served", "dated"),
    [
        ("gpt-4o", "gpt-4o-2024-08-06", True),
        ("claude-x", "claude-x-20240806", True),
        ("gpt-4", "gpt-4-0613", True),
        ("mistral", "mistral-2411", True),
        ("gemini", "gemini-001", True),
        ("gpt-4o", "gpt-4o-mini", False),
        ("gpt-4o", "gpt-4o-mini-2024-07-18", False),
        ("gpt-4o", "gpt-4o", False),
        ("qwen", "qwen-72", False),
        ("llama", "llama-4096", False),
    ],
)
def test_what_a_date_looks_like(alias: str, served: str, dated: bool) -> None:
    assert is_dated(alias, served) is dated


def test_a_reference_of_an_earlier_stint_counts(lab: Any) -> None:
    references = {"a": {"served_model": "m-0", "upstream": "north", "fingerprint": "fp_0"}}
    (reply,) = replies(
        lab,
        {"model": "m-1", "provider": "south", "system_fingerprint": "fp_1"},
        options={"references": references},
        drift=INVALIDATE,
    )
    assert reply.drift == [
        "served_model: m-0 -> m-1",
        "upstream: north -> south",
        "fingerprint: fp_0 -> fp_1",
    ]
    assert lab.settled == []


def test_a_dated_reference_refines_the_expectation(lab: Any) -> None:
    references = {"a": {"served_model": "m-1-2026-01-01"}}
    (reply,) = replies(
        lab, {"model": "m-1-2026-02-02"}, member={"expect_served": "m-1"}, options={"references": references}
    )
    assert reply.drift == ["served_model: m-1-2026-01-01 -> m-1-2026-02-02"]


def test_policy_record_marks_the_row_but_not_the_reply(lab: Any) -> None:
    _, reply = replies(lab, {"system_fingerprint": "fp_1"}, {"system_fingerprint": "fp_2"})
    assert reply.drift == []
    assert lab.ended[1].drift == ["fingerprint: fp_1 -> fp_2"]


def test_unknown_is_neither_drift_nor_a_reference(lab: Any) -> None:
    silent = {"model": None, "system_fingerprint": None, "provider": None}
    got = replies(lab, silent, {"model": "m-1"}, silent, {"model": ""}, {"model": 5}, {"model": "m-2"})
    assert [reply.drift for reply in got] == [[]] * 5 + [["served_model: m-1 -> m-2"]]
    assert [row.served_model for row in lab.ended] == [None, "m-1", None, None, None, "m-2"]


def test_a_faulty_reply_settles_nothing(lab: Any) -> None:
    async def run() -> None:
        bad = lab.http(200, {"model": "m-9", "choices": []})
        async with lab.routed(lab.in_turn(bad)) as (_, route):
            await lab.call(route)
            assert lab.settled == [("a", "served_model", "m-1")]

    asyncio.run(run())


def test_upstreams_are_read_from_body_and_headers(lab: Any) -> None:
    got = replies(
        lab,
        {"headers": {"x_litellm_model_id": "deploy-1"}},
        {"headers": {"x_litellm_model_id": "deploy-2"}},
    )
    assert got[1].drift == ["upstream: deploy-1 -> deploy-2"]
    assert [row.upstream for row in lab.ended] == ["deploy-1", "deploy-2"]


def test_members_of_a_pool_differ_by_design(lab: Any) -> None:
    async def run() -> None:
        def answer(n: int, request: Any) -> bytes:
            model = lab.parsed(request)["model"]
            return lab.http(200, lab.completion(model=model, provider=f"upstream-{n}"))

        async with lab.served(answer) as server:
            members = [lab.member(server.port, name=name, model=f"m-{name}") for name in ("a", "b")]
            floating = {"mode": "floating", "granularity": "call", "seed": 1}
            route = lab.make(lab.spec(members, route=floating))
            for step in range(8):
                lab.place = type(lab.place)(0, "lab.task_0", 0, step)
                assert (await lab.call(route)).drift == []
            await route.aclose()
            assert {row.served_model for row in lab.ended} == {"m-a", "m-b"}
            assert sorted(lab.settled) == [("a", "served_model", "m-a"), ("b", "served_model", "m-b")]
            assert all(row.upstream for row in lab.ended)

    asyncio.run(run())


def test_request_ids_are_kept(lab: Any) -> None:
    ids = {"x_request_id": "r", "x_oneapi_request_id": "o", "apim_request_id": "z", "cf_ray": "c"}
    replies(lab, {"headers": {**ids, "openai_processing_ms": "12"}})
    assert lab.ended[0].request_ids == {name.replace("_", "-"): value for name, value in ids.items()}
