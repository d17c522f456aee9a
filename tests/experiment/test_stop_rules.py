"""What makes going on useless stops an execution: no score, a likely cause, a non-zero exit; and it can go on later."""

import socket
from typing import Any

import pytest

REFUSALS = {
    "unauthorized": (401, {"error": {"message": "bad key"}}, "variable LAB_KEY is not valid"),
    "payment": (402, {"error": {"message": "pay first"}}, "no credit"),
    "forbidden": (403, {"error": {"message": "not yours"}}, "may not use small-2026-01-01"),
    "not_found": (404, {"error": {"message": "no such path"}}, "the other usual path is /chat/completions"),
    "quota": (429, {"error": {"code": "insufficient_quota", "message": "used up"}}, "quota"),
    "no_model": (503, {"error": {"code": "model_not_found", "message": "no channel"}}, "has no model"),
    "bad_request": (400, {"error": {"message": "unknown field top_p"}}, "the first call was already refused"),
}


@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=list(REFUSALS))
def test_refusal_stops_and_the_same_command_goes_on(
    lab: Any, kit: Any, refusal: tuple[int, Any, str]
) -> None:
    status, body, cause = refusal
    healthy = False
    server = kit.ChatServer(lambda n, request: (200, kit.completion()) if healthy else (status, body))
    with server.serving():
        command = ("k=2", "benchmark.limit=2", *kit.LAB, *server.overrides)
        stopped = lab.here(*command, LAB_KEY=kit.KEY)
        assert stopped.code == 3
        assert cause in stopped.err
        assert "go on with python -m xspec k=2" in stopped.err
        assert "Traceback" not in stopped.err
        assert len(server.requests) <= 2, "one try a worker: a stop is not retried"
        (arm,) = lab.report()["arms"]
        assert arm["trials"] == {"pass": 0, "fail": 0, "invalid": 0, "missing": 4}
        assert arm["mean_at_k_pct"] is None
        assert arm["gap_pp"] is None

        healthy = True
        finished = lab.here(*command, LAB_KEY=kit.KEY)
        assert finished.code == 0, finished.err
        (arm,) = lab.report()["arms"]
        assert arm["trials"] == {"pass": 0, "fail": 4, "invalid": 0, "missing": 0}
        assert len(arm["executions"]) == 1


def test_a_400_after_the_first_reply_is_an_invalid_trial_and_no_stop(lab: Any, kit: Any) -> None:
    server = kit.ChatServer(
        lambda n, request: (400, {"error": {"message": "no"}}) if n == 1 else (200, kit.completion())
    )
    with server.serving():
        finished = lab.here(
            "k=4", "benchmark.limit=1", *kit.LAB, *server.overrides, "workers=1", LAB_KEY=kit.KEY
        )
    assert finished.code == 1, "one of four is more than the allowed share of invalid trials"
    assert sorted(outcome for outcome, _ in kit.outcomes(lab.only()).values()) == ["fail"] * 3 + ["invalid"]


def test_ten_unserved_trials_in_a_row_stop(lab: Any, kit: Any) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: every connection is refused
        server = kit.ChatServer(lambda n, request: (200, kit.completion()))
        with server.serving():
            healthy = server.overrides
        refused = [
            f"provider.base_url=http://127.0.0.1:{taken.getsockname()[1]}" if "base_url" in item else item
            for item in healthy
        ]
        command = ("k=5", "benchmark.limit=5", *kit.LAB, *refused, "workers=1")
        stopped = lab.here(*command, LAB_KEY=kit.KEY)
        assert stopped.code == 3
        assert "10 trials in a row could not be served (connection:" in stopped.err
        assert "--retry-invalid" in stopped.err
        assert "no score" in " ".join(stopped.out.split())
        counts = kit.kinds(lab.only())
        assert counts["trial"] == 10
        assert counts["attempt_started"] == counts["attempt"] == 30, "three attempts each"


def test_after_ten_in_a_row_the_same_command_goes_on(lab: Any, kit: Any) -> None:
    healthy = False
    down = (500, {"error": {"message": "down"}})
    server = kit.ChatServer(lambda n, request: (200, kit.completion()) if healthy else down)
    with server.serving():
        command = ("k=4", "benchmark.limit=4", *kit.LAB, *server.overrides, "workers=1")
        stopped = lab.here(*command, LAB_KEY=kit.KEY)
        assert stopped.code == 3
        assert "10 trials in a row could not be served (server_error:" in stopped.err
        healthy, sent = True, len(server.requests)
        assert lab.here(*command, LAB_KEY=kit.KEY).code == 1, "ten of sixteen trials are invalid"
        assert len(server.requests) == sent + 6, "those that were missing, and no other"
        assert lab.here(*command, "--retry-invalid", LAB_KEY=kit.KEY).code == 0
        assert len(server.requests) == sent + 16
    (arm,) = lab.report()["arms"]
    assert arm["trials"] == {"pass": 0, "fail": 16, "invalid": 0, "missing": 0}


def test_trials_the_route_spoils_one_by_one_do_not_stop(lab: Any, kit: Any) -> None:
    server = kit.ChatServer(lambda n, request: (500, {"error": {"message": "down"}}))
    with server.serving():
        finished = lab.here("k=3", "benchmark.limit=3", *kit.LAB, *server.overrides, LAB_KEY=kit.KEY)
    assert finished.code == 1, "finished, and every trial of it invalid"
    (arm,) = lab.report()["arms"]
    assert arm["trials"] == {"pass": 0, "fail": 0, "invalid": 9, "missing": 0}
    assert (arm["mean_at_k_pct"], arm["pass_hat_k_pct"], arm["gap_pp"]) == (None, None, None)
    assert arm["retry_count"] == 18


def test_429_until_max_wait_is_invalid_and_never_a_fail(lab: Any, kit: Any) -> None:
    server = kit.ChatServer(lambda n, request: (429, {"error": {"message": "slow down"}}))
    with server.serving():
        finished = lab.here("k=1", "benchmark.limit=2", *kit.LAB, *server.overrides, LAB_KEY=kit.KEY)
    assert finished.code == 1
    assert set(kit.outcomes(lab.only()).values()) == {("invalid", "route:rate_limited")}


def test_null_verdict_is_invalid_and_never_a_fail(lab: Any, kit: Any) -> None:
    server = kit.ChatServer(lambda n, request: (200, kit.completion("null")))
    with server.serving():
        finished = lab.here("k=1", "benchmark.limit=2", *kit.LAB, *server.overrides, LAB_KEY=kit.KEY)
    assert finished.code == 1
    assert set(kit.outcomes(lab.only()).values()) == {("invalid", "verdict_null")}


def test_another_served_model_makes_trials_invalid(lab: Any, kit: Any) -> None:
    server = kit.ChatServer(
        lambda n, request: (200, kit.completion(model="other-2026-01-01" if n == 1 else "small-2026-01-01"))
    )
    with server.serving():
        lab.here("k=3", "benchmark.limit=1", *kit.LAB, *server.overrides, "workers=1", LAB_KEY=kit.KEY)
    found = sorted(kit.outcomes(lab.only()).values())
    assert found == [("fail", "verdict"), ("fail", "verdict"), ("invalid", "drift")]
