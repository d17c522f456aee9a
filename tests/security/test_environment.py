"""The environment, whole: no variable of it reroutes, adds to or reveals anything of a call made by the program."""

from pathlib import Path
from typing import Any

HOSTILE = {
    "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
    "OPENAI_API_BASE": "http://127.0.0.1:9/v1",
    "OPENAI_API_KEY": "sk-ambient-00000000000000000000",
    "OPENAI_ADMIN_KEY": "sk-admin-00000000000000000000",
    "OPENAI_ORG_ID": "org-ambient",
    "OPENAI_PROJECT_ID": "proj-ambient",
    "OPENAI_WEBHOOK_SECRET": "whsec-ambient",
    "OPENAI_CUSTOM_HEADERS": "Authorization: Bearer sk-evil-000000000000\nX-Other: 1\nCookie: a=b",
    "OPENAI_LOG": "debug",
    **dict.fromkeys(("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"), "http://127.0.0.1:9"),
    **dict.fromkeys(("ALL_PROXY", "all_proxy", "WS_PROXY"), "http://127.0.0.1:9"),
    "NO_PROXY": "",
    "SSL_CERT_FILE": "/nowhere.pem",
    "SSL_CERT_DIR": "/nowhere",
    "REQUESTS_CA_BUNDLE": "/nowhere.pem",
    "CURL_CA_BUNDLE": "/nowhere.pem",
    "AIOHTTP_NO_EXTENSIONS": "1",
    "HTTPX_LOG_LEVEL": "trace",
    "PYTHONASYNCIODEBUG": "0",
}


def test_a_command_under_a_hostile_environment_sends_the_same_bytes(
    program: Any, kit: Any, tmp_path: Path
) -> None:
    """A process of its own, as a user would start it; a .netrc with another password for this host."""
    netrc = tmp_path / "home" / ".netrc"
    netrc.write_text("machine 127.0.0.1 login me password hunter2hunter2\ndefault login x password y\n")
    netrc.chmod(0o600)
    server = kit.ChatServer(lambda n, request: (200, kit.completion("no")))
    said = []
    with server.serving():
        for variables in ({}, {**HOSTILE, "NETRC": str(netrc)}):
            word = "reproduce" if said else ""
            words = (word, program.executions()[0].info.spec_id) if word else ()
            overrides = () if word else ("k=1", "benchmark=choices", "benchmark.limit=2", *server.overrides)
            done = program.start(
                *words, *overrides, LAB_KEY=kit.KEY, XSPEC_MLFLOW="later", **variables
            ).wait()
            assert done.code in (0, 1), done.err
            said.append(done.out + done.err)
    half = len(server.requests) // 2
    assert half >= 2
    by_content = [sorted(map(repr, part)) for part in (server.requests[:half], server.requests[half:])]
    assert by_content[0] == by_content[1]
    names = [
        {name.lower(): value for name, value in headers.items() if name.lower() != "content-length"}
        for headers in server.headers
    ]
    assert all(headers == names[0] for headers in names)
    assert names[0]["authorization"] == f"Bearer {kit.KEY}"
    for text in (kit.KEY, "sk-ambient", "sk-evil", "hunter2hunter2"):
        assert text not in "".join(said)
