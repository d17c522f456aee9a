"""What doctor says of a healthy provider, and of each way of setting one up wrong."""

from typing import Any

import pytest

from xspec.doctor.findings import Finding, exit_code, note, ok, problem
from xspec.doctor.model_list import models_of, near_names
from xspec.doctor.probe import Raw


def line(lines: list[str], about: str) -> str:
    (found,) = [one for one in lines if one[9:22].strip() == about]
    return found


def test_a_healthy_provider_is_all_fine(clinic: Any) -> None:
    with clinic.Provider().serving() as provider:
        code, lines, err = clinic(*provider.overrides(), LAB_KEY=clinic.KEY)
    assert (code, err) == (0, ""), lines
    assert not [one for one in lines if one.startswith(("problem", "note!"))]
    assert "small-2026-01-01 in 11 replies" in line(lines, "served")
    assert "offered" in line(lines, "streaming")
    assert "called the tool" in line(lines, "tools")
    assert "1 call, 1 attempt, 720 tokens" in line(lines, "trial")
    assert "500 calls, 360,000 tokens" in line(lines, "cost"), "100 tasks, 5 runs"
    assert provider.seen[0] == ("GET", "/v1/models")
    assert len(provider.bodies) == 13, (
        "1 minimal, 1 with tools, 1 streamed, 5 alone, 4 at once, 1 of the trial"
    )
    assert [bool(body.get("stream")) for body in provider.bodies].count(True) == 1
    assert all(body["temperature"] == 0 and body["seed"] == 42 for body in provider.bodies)
    assert provider.authorizations == {f"Bearer {clinic.KEY}"}


def test_the_store_is_not_written_but_for_the_compiled_spec(clinic: Any) -> None:
    with clinic.Provider().serving() as provider:
        clinic(*provider.overrides(), LAB_KEY=clinic.KEY)
    assert list((clinic.store / "executions").iterdir()) == []


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "is not set → export LAB_KEY=… or put a line LAB_KEY=… into .env"),
        ("", "is empty"),
        (" {} ", "white space or a newline around it → store the bare key"),
        ('"{}"', "quotes around it → store the bare key"),
    ],
)
def test_a_key_that_cannot_be_used(clinic: Any, value: str | None, said: str) -> None:
    variables = {} if value is None else {"LAB_KEY": value.format(clinic.KEY)}
    with clinic.Provider().serving() as provider:
        code, lines, err = clinic(*provider.overrides(), **variables)
    assert code == 3
    assert said in line(lines, "key")
    assert provider.seen == []
    assert clinic.KEY not in "\n".join([*lines, err])


def test_the_key_comes_from_dotenv(clinic: Any) -> None:
    (clinic.root / ".env").write_text(f"LAB_KEY={clinic.KEY}\n")
    with clinic.Provider().serving() as provider:
        code, lines, _ = clinic(*provider.overrides(), "--no-trial")
        assert (code, "from .env (kf-" in line(lines, "key")) == (0, True)
        code, lines, _ = clinic(*provider.overrides(), "--no-trial", LAB_KEY="another-key-of-mine")
        assert (code, "wins over .env" in line(lines, "key")) == (1, True)


def test_the_other_usual_path_answers(clinic: Any) -> None:
    with clinic.Provider(path="/chat/completions", models=None).serving() as provider:
        code, lines, _ = clinic(*provider.overrides(), LAB_KEY=clinic.KEY)
        assert code == 3
        assert line(lines, "call").endswith("but /chat/completions answers → provider.path=/chat/completions")
        mended = provider.overrides(**{"provider.path": "/chat/completions"})
        assert clinic(*mended, "--no-trial", LAB_KEY=clinic.KEY)[0] == 0


def test_neither_path_answers(clinic: Any) -> None:
    with clinic.Provider(path="/elsewhere/chat/completions").serving() as provider:
        code, lines, _ = clinic(*provider.overrides(), LAB_KEY=clinic.KEY)
    assert code == 3
    assert "nor does /chat/completions" in line(lines, "call")


def test_a_model_that_is_not_there_has_near_names(clinic: Any) -> None:
    with clinic.Provider().serving() as provider:
        changed = provider.overrides(**{"provider.model": "smal-2026-01-01"})
        code, lines, _ = clinic(*changed, LAB_KEY=clinic.KEY)
    assert code == 3
    assert "did you mean small-2026-01-01" in line(lines, "call")


def test_401_says_what_is_likely_and_shows_no_key(clinic: Any) -> None:
    with clinic.Provider(status=401).serving() as provider:
        code, lines, err = clinic(*provider.overrides(), LAB_KEY=clinic.KEY)
    assert code == 3
    assert "answered 401" in line(lines, "call")
    assert "LAB_KEY" in line(lines, "call")
    assert clinic.KEY not in "\n".join([*lines, err])


def test_a_gateway_that_swaps_models_and_proves_nothing(clinic: Any) -> None:
    swapping = clinic.Provider(
        served=(clinic.MODEL, "tiny-2025-06-01"), headers={"X-Oneapi-Request-Id": "r"}, fingerprint=None
    )
    with swapping.serving() as provider:
        code, lines, _ = clinic(*provider.overrides(), "--no-trial", LAB_KEY=clinic.KEY)
    assert code == 1
    assert line(lines, "served").startswith("note!    served       drifted")
    assert "one-api" in line(lines, "upstream")
    assert "unknown" in line(lines, "fingerprint")


def test_an_upstream_that_changes_silently(clinic: Any) -> None:
    with clinic.Provider(upstreams=("north", "north", "south")).serving() as provider:
        code, lines, _ = clinic(*provider.overrides(), "--no-trial", LAB_KEY=clinic.KEY)
    assert code == 1
    assert line(lines, "upstream").startswith("note!    upstream     drifted")


def test_a_storm_of_429s(clinic: Any) -> None:
    with clinic.Provider(limited=1000).serving() as provider:
        code, lines, _ = clinic(*provider.overrides(), LAB_KEY=clinic.KEY)
    assert code == 3
    assert "times 429" in line(lines, "call")
    assert "workers" in line(lines, "call")


def test_a_few_429s_matter_but_pass(clinic: Any) -> None:
    with clinic.Provider(limited=2).serving() as provider:
        code, lines, _ = clinic(*provider.overrides(), "--no-trial", LAB_KEY=clinic.KEY)
    assert code == 1
    assert "2 of 13 attempts failed: 2 rate_limited" in line(lines, "faults")


def test_what_would_reroute_is_said_and_ignored(clinic: Any) -> None:
    environ = {
        "https_proxy": "http://user:pass@192.0.2.1:1",
        "HTTP_PROXY": "http://192.0.2.1:1",
        "OPENAI_BASE_URL": "http://192.0.2.1:1",
        "OPENAI_CUSTOM_HEADERS": "Authorization: Bearer other",
        "SSL_CERT_FILE": "/nowhere",
    }
    with clinic.Provider().serving() as provider:
        code, lines, _ = clinic(*provider.overrides(), "--no-trial", LAB_KEY=clinic.KEY, **environ)
    assert code == 0
    assert "HTTP_PROXY, https_proxy are set: xspec ignores them; it connects directly" in line(lines, "proxy")
    assert "192.0.2.1" not in "\n".join(lines), "a proxy's address may hold a password"
    said = "\n".join(lines)
    assert "OPENAI_BASE_URL, OPENAI_CUSTOM_HEADERS are set" in said
    assert "SSL_CERT_FILE is set" in said
    assert provider.authorizations == {f"Bearer {clinic.KEY}"}


def test_a_clock_that_is_wrong(clinic: Any) -> None:
    with clinic.Provider(skew_s=-600).serving() as provider:
        code, lines, _ = clinic(*provider.overrides(), "--no-trial", LAB_KEY=clinic.KEY)
    assert code == 1
    assert "600 s ahead of the provider's" in line(lines, "clock").replace("599", "600").replace("601", "600")


def test_nobody_listens(clinic: Any) -> None:
    provider = clinic.Provider(port=9)
    code, lines, _ = clinic(*provider.overrides(), LAB_KEY=clinic.KEY)
    assert code == 3
    assert "is the server up" in line(lines, "call")


def test_words_instead_of_a_tool_call_and_replies_that_differ(clinic: Any) -> None:
    with clinic.Provider(tools=False, streams=False, texts=("a", "b", "c")).serving() as provider:
        code, lines, _ = clinic(*provider.overrides(), "--no-trial", LAB_KEY=clinic.KEY)
    assert code == 1
    assert "answered in words" in line(lines, "tools")
    assert "not offered" in line(lines, "streaming")
    assert "5 replies alone: 3 texts" in line(lines, "determinism")


def test_an_agent_without_tool_calls_needs_none(clinic: Any) -> None:
    with clinic.Provider(tools=False).serving() as provider:
        code, lines, _ = clinic(*provider.overrides(), "agent=json_choice", "--no-trial", LAB_KEY=clinic.KEY)
    assert code == 0, lines
    assert not [one for one in lines if one[9:22].strip() == "tools"]
    assert not any("tools" in body for body in provider.bodies)


def test_an_undated_model_is_a_note_that_matters(clinic: Any) -> None:
    with clinic.Provider(models=("small",)).serving() as provider:
        changed = provider.overrides(**{"provider.model": "small"})
        code, lines, _ = clinic(*changed, "--no-trial", LAB_KEY=clinic.KEY)
    assert code == 1
    assert line(lines, "model").startswith("note!    model        small (member main) is an undated model id")
    assert "the very alias that was asked for" in line(lines, "served")


def test_rehearsal_says_that_it_is_simulated(clinic: Any) -> None:
    code, lines, err = clinic("k=2", "benchmark.limit=3")
    assert (code, err) == (0, "")
    assert lines[0].startswith("SIMULATED MODEL")
    assert "xspec itself started it" in line(lines, "served")
    assert "lab.task_0" in line(lines, "trial")


def test_wrong_input_is_exit_code_2(clinic: Any) -> None:
    code, lines, err = clinic("k=zero")
    assert (code, lines) == (2, [])
    assert len(err.splitlines()) == 1


def test_the_exit_code_is_the_worst_finding() -> None:
    fine = [ok("a", "b"), note("a", "b")]
    assert exit_code(fine) == 0
    assert exit_code([*fine, note("a", "b", matters=True)]) == 1
    assert exit_code([*fine, note("a", "b", matters=True), problem("a", "b")]) == 3
    assert Finding("ok", "call", "fine").line() == "ok       call         fine"


def test_near_names() -> None:
    known = ["gpt-4o-2024-08-06", "gpt-4o-mini", "openai/gpt-4o", "claude-x"]
    assert near_names("gpt-4o", known) == ["gpt-4o-2024-08-06", "gpt-4o-mini", "openai/gpt-4o"]
    assert near_names("gtp-4o-mini", known)[0] == "gpt-4o-mini"
    assert near_names("whale", known) == []


@pytest.mark.parametrize("body", [b"", b"[1]", b'{"data": 3}', b'{"data": [{"id": 5}, 7]}', b"<html>"])
def test_what_is_no_model_list(body: bytes) -> None:
    assert models_of(Raw(200, {}, body, 0.0)) == []
