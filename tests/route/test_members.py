"""Which member serves a call, and where it is."""

from collections import Counter
from typing import Any

import pytest

from xspec.errors import UserError
from xspec.records.rows import Place
from xspec.route.address import address_of, other_path
from xspec.route.members import check_base_url, choose, default_path
from xspec.spec.members import OpenAIMember
from xspec.spec.models import RetryPolicy, RouteSpec


def pool(granularity: str = "call", seed: int = 7, size: int = 3) -> RouteSpec:
    members = tuple(
        OpenAIMember(
            kind="openai",
            name=f"m{i}",
            base_url="http://127.0.0.1:1/v1",
            path="/chat/completions",
            model="m",
            api_key_env="KEY",
        )
        for i in range(size)
    )
    retry = RetryPolicy(
        max_attempts=3,
        backoff_s=1,
        backoff_base=2,
        backoff_max_s=8,
        statuses=(),
        timeouts=True,
        connection_errors=True,
    )
    route: dict[str, Any] = {"timeout_s": 5, "max_wait_s": 5, "retry": retry, "members": members}
    if size == 1:
        return RouteSpec(mode="fixed", **route)
    return RouteSpec(mode="floating", granularity=granularity, seed=seed, **route)


PLACES = [
    Place(run, f"bank.task_{task}", 0, step) for run in range(5) for task in range(40) for step in range(6)
]


def test_golden_choices() -> None:
    """These stand in stored executions: they may never change."""
    by_call = [choose(pool(), place, 0).name for place in PLACES[:12]]
    by_attempt = [choose(pool("attempt"), PLACES[0], attempt).name for attempt in range(8)]
    assert by_call == GOLDEN_CALL
    assert by_attempt == GOLDEN_ATTEMPT


def test_the_choice_is_roughly_even() -> None:
    counts = Counter(choose(pool(), place, 0).name for place in PLACES)
    assert all(abs(count - len(PLACES) / 3) < 4 * (len(PLACES) * 2 / 9) ** 0.5 for count in counts.values())


def test_the_choice_knows_no_take_and_no_order() -> None:
    route = pool()
    forwards = [choose(route, place, 0).name for place in PLACES]
    backwards = [choose(route, Place(p.run, p.task, 9, p.step, p.call), 0).name for p in reversed(PLACES)]
    assert forwards == backwards[::-1]


def test_what_the_choice_depends_on() -> None:
    def names(route: RouteSpec, attempt: int = 0, **change: int) -> list[str]:
        places = [
            Place(p.run + change.get("run", 0), p.task, 0, p.step, change.get("call", 0)) for p in PLACES
        ]
        return [choose(route, place, attempt).name for place in places]

    base = names(pool())
    assert names(pool(seed=8)) != base
    assert names(pool(), call=1) != base
    assert names(pool(), run=1) != base
    assert names(pool(), attempt=1) == base
    assert names(pool("attempt"), attempt=1) != names(pool("attempt"))


def test_a_fixed_route_has_one_member() -> None:
    assert {choose(pool(size=1), place, 0).name for place in PLACES} == {"m0"}


@pytest.mark.parametrize(
    ("base_url", "path", "wrong"),
    [
        ("https://host/v1?api-version=1", None, "query string"),
        ("https://host/v1?key=sk-verysecretkey", None, "query string"),
        ("host/v1", None, "http://"),
        ("ftp://host/v1", None, "http://"),
        ("//host/v1", None, "http://"),
        ("localhost:8000/v1", None, "http://"),
        ("", None, "http://"),
        ("https://", None, "no host"),
        ("https:///v1", None, "no host"),
        ("https://user:sk-verysecretkey@host/v1", None, "user info"),
        ("user:sk-verysecretkey@host/v1", None, "user info"),
        ("https://hôst/v1", None, "punycode"),
        ("https://ho st/v1", None, "white space"),
        (" https://host/v1", None, "white space"),
        ("https://host/v1\n", None, "white space"),
        ("https://host/v1#x", None, "fragment"),
        ("https://host:99999/v1", None, "port"),
        ("https://host:0/v1", None, "port"),
        ("https://host:x/v1", None, "port"),
        ("https://ho|st/v1", None, "characters"),
        ("https://host/v1/chat/completions", None, "base URL https://host/v1 and path /chat/completions"),
        ("https://host/v1/chat/completions/", None, "ends in /chat/completions"),
        ("https://host/v1/v1", None, "twice"),
        ("https://host//v1", None, "segment"),
        ("https://host/../v1", None, "segment"),
        ("https://host/v%31", None, "percent"),
        ("https://host/v1", "/v1/chat/completions", "/v1 twice"),
        ("https://host/api", "/api/v1/chat/completions", "again"),
        ("https://host/v1", "//chat/completions", "empty segment"),
    ],
)
def test_base_urls_that_cannot_be_meant(base_url: str, path: str | None, wrong: str) -> None:
    with pytest.raises(UserError, match="base URL") as caught:
        check_base_url(base_url, path)
    assert wrong in str(caught.value)
    assert "verysecretkey" not in str(caught.value)


@pytest.mark.parametrize(
    ("base_url", "path", "url"),
    [
        ("https://host/v1", "/chat/completions", "https://host/v1/chat/completions"),
        ("https://host/v1/", "/chat/completions", "https://host/v1/chat/completions"),
        ("https://host", "/v1/chat/completions", "https://host/v1/chat/completions"),
        ("https://HOST:443/api", "/v1/chat/completions", "https://host/api/v1/chat/completions"),
        ("http://[::1]:8000", "/v1/chat/completions", "http://[::1]:8000/v1/chat/completions"),
        (
            "http://xn--hst-sna.example:80/v1",
            "/chat/completions",
            "http://xn--hst-sna.example/v1/chat/completions",
        ),
    ],
)
def test_addresses(base_url: str, path: str, url: str) -> None:
    check_base_url(base_url, path)
    assert address_of(base_url, path).url == url


@pytest.mark.parametrize(
    ("base_url", "path"),
    [
        ("https://host/v1", "/chat/completions"),
        ("https://host/v1/", "/chat/completions"),
        ("https://host/api", "/v1/chat/completions"),
        ("https://host", "/v1/chat/completions"),
        ("https://host/v1beta", "/v1/chat/completions"),
    ],
)
def test_default_paths(base_url: str, path: str) -> None:
    assert default_path(base_url) == path
    check_base_url(base_url, path)


def test_the_other_path_is_its_own_inverse() -> None:
    assert other_path("/api/v1/chat/completions") == "/api/chat/completions"
    assert other_path("/api/chat/completions") == "/api/v1/chat/completions"


GOLDEN_CALL = ["m2", "m1", "m2", "m1", "m0", "m1", "m2", "m2", "m0", "m2", "m0", "m0"]
GOLDEN_ATTEMPT = ["m2", "m0", "m1", "m0", "m0", "m0", "m0", "m1"]
