"""Verified, drifted, unverifiable, unknown: never "ok". And what ties a router's member to one upstream."""

import asyncio
from collections import Counter
from dataclasses import asdict, replace
from typing import Any

import pytest

from xspec.errors import SpecDrift
from xspec.route.drift import names_a_date
from xspec.route.guard import SENDING
from xspec.route.listing import ListingGuard, list_address
from xspec.route.routers import is_openrouter, why_not_pinned
from xspec.route.transport import guarded_transport, http_client
from xspec.route.verification import Revealed, revealed, verify
from xspec.spec.models import ExperimentSpec

DATED = "m-2026-01-01"


def states(lab: Any, replies: dict[Revealed, int], **member: Any) -> dict[str, str]:
    data = lab.spec([lab.member(9, **{"model": DATED, **member})])
    found = verify(ExperimentSpec.model_validate_json(data).route, replies)
    return {one.kind: one.state for one in found}


HEALTHY = Revealed("a", DATED, None, "fp_1", aggregated=False)


@pytest.mark.parametrize(
    ("replies", "served", "upstream", "fingerprint"),
    [
        ({}, "unknown", "unknown", "unknown"),
        ({HEALTHY: 9}, "verified", "unverifiable", "verified"),
        ({replace(HEALTHY, upstream="north"): 9}, "verified", "verified", "verified"),
        ({replace(HEALTHY, upstream="north"): 9, HEALTHY: 1}, "verified", "unknown", "verified"),
        ({replace(HEALTHY, fingerprint=None): 9}, "verified", "unverifiable", "unknown"),
        ({replace(HEALTHY, fingerprint=None): 1, HEALTHY: 9}, "verified", "unverifiable", "unknown"),
        ({replace(HEALTHY, served_model=None): 9}, "unverifiable", "unverifiable", "verified"),
        ({replace(HEALTHY, aggregated=True): 9}, "unverifiable", "unverifiable", "unverifiable"),
        (
            {replace(HEALTHY, aggregated=True, fingerprint=None): 9},
            "unverifiable",
            "unverifiable",
            "unknown",
        ),
        (
            {HEALTHY: 9, replace(HEALTHY, served_model="x", drift=("served_model",)): 1},
            "drifted",
            "unverifiable",
            "verified",
        ),
        (
            {HEALTHY: 9, replace(HEALTHY, fingerprint="fp_2", drift=("fingerprint",)): 1},
            "verified",
            "unverifiable",
            "drifted",
        ),
        ({replace(HEALTHY, member="another"): 9}, "unknown", "unknown", "unknown"),
    ],
)
def test_what_replies_prove(lab: Any, replies: Any, served: str, upstream: str, fingerprint: str) -> None:
    got = states(lab, replies)
    assert got == {"served_model": served, "upstream": upstream, "fingerprint": fingerprint}


def test_an_alias_echoed_proves_nothing_and_a_dated_answer_does(lab: Any) -> None:
    echoed = replace(HEALTHY, served_model="m")
    assert states(lab, {echoed: 5}, model="m")["served_model"] == "unverifiable"
    assert states(lab, {HEALTHY: 5}, model="m")["served_model"] == "verified"


def test_another_model_than_was_asked_for_is_drift_unless_it_was_expected(lab: Any) -> None:
    other = {replace(HEALTHY, served_model="gpt-5"): 9}
    assert states(lab, other)["served_model"] == "drifted"
    assert states(lab, other, expect_served="gpt-5")["served_model"] == "verified"
    assert states(lab, {replace(HEALTHY, served_model=f"vendor/{DATED}"): 9})["served_model"] == "verified"
    assert states(lab, {HEALTHY: 9}, model="vendor/m")["served_model"] == "verified"


def test_upstreams_that_change_where_none_is_pinned_are_not_verified(lab: Any) -> None:
    replies = {replace(HEALTHY, upstream=name): 3 for name in ("north", "south")}
    assert states(lab, replies)["upstream"] == "unverifiable"


def test_rows_reveal_what_they_say(lab: Any) -> None:
    async def run() -> None:
        raw = [
            lab.http(200, lab.completion(model=DATED), x_oneapi_request_id="r"),
            lab.http(503),
            lab.http(200, lab.completion(model="other")),
        ]
        async with lab.routed(lab.in_turn(*raw)) as (_, route):
            for _ in range(2):
                await lab.call(route)

    asyncio.run(run())
    found = [revealed(asdict(row)) for row in lab.ended]
    assert found == [
        Revealed("a", DATED, None, None, aggregated=True),
        None,
        Revealed("a", "other", None, None, aggregated=False, drift=("served_model",)),
    ]
    assert states(lab, Counter(one for one in found if one))["served_model"] == "drifted"


PIN = {"only": ["deepinfra"], "allow_fallbacks": False, "require_parameters": True}


@pytest.mark.parametrize(
    ("provider", "pinned"),
    [
        (PIN, True),
        (None, False),
        ({"order": ["deepinfra"], "allow_fallbacks": False, "require_parameters": True}, False),
        ({**PIN, "only": ["deepinfra", "together"]}, False),
        ({**PIN, "only": "deepinfra"}, False),
        ({**PIN, "allow_fallbacks": True}, False),
        ({**PIN, "require_parameters": False}, False),
        ({"only": ["deepinfra"], "allow_fallbacks": False}, False),
        ("deepinfra", False),
    ],
)
def test_what_pins_an_openrouter_member(provider: Any, pinned: bool) -> None:
    why = why_not_pinned("https://openrouter.ai/api/v1", {"provider": provider})
    assert (why is None) is pinned
    assert why is None or "allow_fallbacks: false" in why
    assert why_not_pinned("https://api.example.org/v1", None) is None


@pytest.mark.parametrize(
    ("url", "is_one"),
    [
        ("https://openrouter.ai/api/v1", True),
        ("https://OpenRouter.ai./api/v1", True),
        ("https://eu.openrouter.ai/api/v1", True),
        ("https://notopenrouter.ai/api/v1", False),
        ("https://openrouter.ai.example.org/v1", False),
    ],
)
def test_which_hosts_are_openrouters(url: str, is_one: bool) -> None:
    assert is_openrouter(url) is is_one


@pytest.mark.parametrize(
    ("model", "dated"),
    [
        ("gpt-4.1-2025-04-14", True),
        ("openai/gpt-4.1-2025-04-14:free", True),
        ("claude-x-20250514", True),
        ("gpt-4-0613", True),
        ("gpt-4.1", False),
        ("qwen2.5-72b-instruct", False),
        ("m-1", False),
    ],
)
def test_which_model_ids_are_dated(model: str, dated: bool) -> None:
    assert names_a_date(model) is dated


def test_the_model_lists_guard_lets_one_request_pass(lab: Any) -> None:
    from xspec.route.address import address_of
    from xspec.route.keys import fingerprint

    async def run() -> None:
        async with lab.served(lab.http(200, {"data": []})) as server:
            address = list_address(address_of(f"http://127.0.0.1:{server.port}/v1", "/chat/completions"))
            guard = ListingGuard(address, fingerprint(lab.KEY))
            good = {"authorization": f"Bearer {lab.KEY}", "user-agent": "xspec"}
            async with http_client(guarded_transport(guard, secure=False, ca=None, proxy=None)) as http:
                assert (await http.request("GET", address.url, headers=good)).status_code == 200
                for method, url, headers, body in (
                    ("POST", address.url, good, None),
                    ("GET", address.url + "?all=1", good, None),
                    ("GET", address.url.replace("/models", "/keys"), good, None),
                    ("GET", address.url.replace("127.0.0.1", "127.0.0.2"), good, None),
                    ("GET", address.url, {**good, "authorization": "Bearer another"}, None),
                    ("GET", address.url, {**good, "x-other": "1"}, None),
                    ("GET", address.url, good, b"{}"),
                    ("GET", address.url, {"user-agent": "xspec"}, None),
                ):
                    with pytest.raises(SpecDrift):
                        await http.request(method, url, headers=headers, content=body)
            assert [request.line for request in server.requests] == ["GET /v1/models HTTP/1.1"]
        assert SENDING.get() is None

    asyncio.run(run())
