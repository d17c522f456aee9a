"""A canary key: not one byte of it is written anywhere, however it came in, and no worker ever has it."""

import base64
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from xspec.spec.compose import conf_dir

CANARY = "canary-4711-Plain-Words-and-some-Length"
MLFLOW_TOO = {"XSPEC_MLFLOW": "now"}
"""With a key in the environment, tests/security/test_traces.py has MLflow too."""
FORMS = (CANARY.encode(), base64.b64encode(CANARY.encode()), CANARY.encode().hex().encode())


def _holding(root: Path) -> list[Path]:
    """The files below a folder that hold the canary in some form."""
    files = [path for path in root.rglob("*") if path.is_file()]
    return [path for path in files if any(form in path.read_bytes() for form in FORMS)]


def _asks_for_the_environment(kit: Any) -> Any:
    def answer(n: int, request: dict[str, Any]) -> tuple[int, Any]:
        last = request["messages"][-1]
        if last["role"] == "user":
            return 200, kit.completion(None, ("environ", {}), ("add", {"amount": 3}))
        return 200, kit.completion(f"I saw {len(last['content'])} characters.")

    return kit.ChatServer(answer)


@pytest.mark.parametrize("way", ["variable", "dotenv"])
def test_key_is_sent_and_written_nowhere(lab: Any, kit: Any, way: str) -> None:
    """As a process of its own, so that everything it says is seen; the agent asks for the worker's environment."""
    server = _asks_for_the_environment(kit)
    variables = {"LAB_KEY": CANARY} if way == "variable" else MLFLOW_TOO
    with server.serving():
        if way == "dotenv":
            (lab.cwd / ".env").write_text(f"# keys\nexport OTHER={CANARY}\nLAB_KEY=${{OTHER}}\n")
        finished = lab.start("k=1", "benchmark.limit=2", *kit.LAB, *server.overrides, **variables).wait()
        reported = lab.here("report", "--format", "json")
    assert finished.code == 0, finished.err
    assert {headers["authorization"] for headers in server.headers} == {f"Bearer {CANARY}"}
    (lab.cwd / ".env").unlink(missing_ok=True)
    assert (lab.store_path / "mlflow.db").exists() == (way == "dotenv")
    assert _holding(lab.root) == []
    assert not any(form.decode() in reported.out for form in FORMS)
    seen = [m["content"] for request in server.requests for m in request["messages"] if m["role"] == "tool"]
    assert any("PATH=" in text for text in seen), "the agent did see an environment"
    assert not any("LAB_KEY" in text or "OTHER=" in text for text in seen)
    assert sorted(path.name for path in lab.cwd.iterdir()) == []
    assert sorted(path.name for path in (lab.root / "home").iterdir()) == []


@pytest.mark.parametrize("echo", ["error", "reset"])
def test_server_that_echoes_the_key_does_not_get_it_written(lab: Any, kit: Any, echo: str) -> None:
    said = {"error": {"message": f"Incorrect API key provided: {CANARY}.", "code": CANARY}}
    server = kit.ChatServer(lambda n, request: (401 if echo == "error" else 500, said))
    with server.serving():
        finished = lab.here(
            "k=1", "benchmark.limit=1", *kit.LAB, *server.overrides, LAB_KEY=CANARY, **MLFLOW_TOO
        )
    assert finished.code in (1, 3)
    assert CANARY not in finished.out + finished.err
    assert (lab.store_path / "mlflow.db").exists()
    assert _holding(lab.root) == []


ARGUMENTS = {
    "as a field": ["+provider.api_key=" + CANARY],
    "in extra_body": ["provider.extra_body={api_key: " + CANARY + "}"],
    "in extra_body under a harmless name": ["provider.extra_body={note: " + CANARY + "}"],
    "short and unknown, in extra_body": ["provider.extra_body={api_key: hunter2hunter2}"],
    "in the pool": ["provider.pool=[{name: b, api_key: hunter2hunter2}]"],
    "as user info": [f"provider.base_url=http://me:{CANARY}@127.0.0.1:9/v1"],
    "as api_key_env": ["provider.api_key_env=" + CANARY],
    "as lower-case api_key_env": ["provider.api_key_env=hunter2hunter2"],
    "as api_key_env of a sweep": ["provider.api_key_env=LAB_KEY,hunter2hunter2", "-m"],
    "as a header": ["+provider.extra_body.Authorization=Bearer-hunter2hunter2"],
    "in the query": ["provider.base_url=http://127.0.0.1:9/v1?key=" + CANARY],
    "as a word": [CANARY],
    "as an option": ["--key=" + CANARY],
    "in a rule": [f"guide.rules=[use {CANARY} to log in]", "guide=checklist"],
    "in the store's path": [f"store=/tmp/{CANARY}"],
}


@pytest.mark.parametrize("arguments", ARGUMENTS.values(), ids=list(ARGUMENTS))
@pytest.mark.parametrize("named", ["LAB_KEY", "LLM"])
def test_key_on_the_command_line_is_refused_without_echo(
    lab: Any, kit: Any, arguments: list[str], named: str
) -> None:
    server = kit.ChatServer(lambda n, request: (200, kit.completion()))
    with server.serving():
        overrides = [item.replace("LAB_KEY", named) for item in server.overrides]
        refused = lab.here("k=1", "benchmark.limit=1", *kit.LAB, *overrides, *arguments, **{named: CANARY})
    _refused(lab, refused, server)


FILES = {
    "api_key_env": "api_key_env: {key}",
    "api_key_env in lower case": "api_key_env: hunter2hunter2",
    "api_key": "api_key: {key}",
    "extra_body": "extra_body: {{password: hunter2hunter2}}",
    "user info": "base_url: http://me:{key}@127.0.0.1:9/v1",
    "model": "model: {key}",
}


@pytest.mark.parametrize("line", FILES.values(), ids=list(FILES))
def test_key_in_a_configuration_file_is_refused_without_echo(
    lab: Any, kit: Any, tmp_path: Path, line: str
) -> None:
    conf = tmp_path / "conf"
    shutil.copytree(conf_dir(), conf)
    plain = {
        "kind": "openai",
        "name": "main",
        "base_url": "http://127.0.0.1:9",
        "path": "null",
        "model": "small-2026-01-01",
        "api_key_env": "LLM",
        "workers": "1",
    }
    name, _, value = line.format(key=CANARY).partition(": ")
    (conf / "provider" / "mine.yaml").write_text(
        "".join(f"{n}: {v}\n" for n, v in {**plain, name: value}.items())
    )
    variables = {"LLM": CANARY, "XSPEC_CONF": str(conf)}
    _refused(
        lab,
        lab.here("k=1", "benchmark.limit=1", "provider=mine", *kit.LAB, **variables),
        kit.ChatServer(None),
    )


@pytest.mark.parametrize("named", ["LAB_KEY", "LLM"])
def test_key_in_a_guide_file_is_refused_without_echo(lab: Any, kit: Any, tmp_path: Path, named: str) -> None:
    guide = tmp_path / "guide.md"
    guide.write_text(f"# Rules\n- Be careful.\n- Log in with {CANARY} first.\n")
    server = kit.ChatServer(lambda n, request: (200, kit.completion()))
    with server.serving():
        overrides = [item.replace("LAB_KEY", named) for item in server.overrides]
        refused = lab.here(
            *("k=1", "benchmark.limit=1", "guide=file", f"guide.file={guide}", *kit.LAB, *overrides),
            **{named: CANARY},
        )
    _refused(lab, refused, server)


def test_environment_in_a_spec_is_refused(lab: Any, kit: Any) -> None:
    refused = lab.here("k=1", *kit.LAB, "provider.model=${oc.env:LLM}", LLM=CANARY)
    assert "reads the environment" in refused.err
    _refused(lab, refused, kit.ChatServer(None))


def _refused(lab: Any, refused: Any, server: Any) -> None:
    """One line, exit code 2, nothing sent, nothing written, and no word of the key."""
    assert refused.code == 2
    assert refused.err.startswith("xspec: ")
    assert refused.err.count("\n") == 1
    assert refused.out == ""
    assert server.requests == []
    assert lab.executions() == []
    assert _holding(lab.root) == []
    for secret in (CANARY, "hunter2hunter2"):
        assert secret not in refused.err
        assert not [p for p in lab.root.rglob("*") if p.is_file() and secret.encode() in p.read_bytes()]
        assert not Path(f"/tmp/{secret}").exists()
    assert not [name for name in os.listdir(lab.store_path) if name == "sweeps"]
