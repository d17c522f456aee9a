"""No key gets past the command line or the configuration, and no message holds it."""

import pytest

from xspec.errors import SecretExposed
from xspec.spec.secrets import scan_arguments, scan_plain

ENVIRON = {"OPENAI_API_KEY": "canary-4711-plain-words", "PATH": "/usr/bin", "SHORT_KEY": "abc"}

EXPOSED = [
    "provider.api_key=whatever",
    "+provider.api_key=whatever",
    "+openai.token=whatever",
    "++x.secret=whatever",
    "provider.api_key_env=sk-abcdefghijklmnopqrstuvwx",
    "provider.api_key_env=deadbeefdeadbeefdeadbeefdeadbeef",
    "provider.model=sk-proj-abcdefghijklmnopqrstuvwx",
    "provider.base_url=https://user:pass@example.org/v1",
    "provider.model=canary-4711-plain-words",
    "provider.extra_body={Authorization: 'Bearer abcdefgh12345'}",
    "+x=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0",
    "+x=Zx9Kq2Lm7Rt4Vb8Nw3Yc6Hd1Jf5Gs0Pq",
    "canary-4711-plain-words",
]

HARMLESS = [
    "sampling.max_tokens=8192",
    "sampling.max_completion_tokens=100",
    "provider.api_key_env=OPENAI_API_KEY",
    "provider.base_url=https://api.openai.com/v1",
    "store=/some/Path/With3/MixedCaseAndDigits0123456789ABCDEF",
    "benchmark.tasks=[banking.user_task_0,slack.user_task_1]",
    "provider.model=Qwen/Qwen2.5-72B-Instruct",
    "hydra/launcher=joblib",
    "+arm=guided",
    "xs-0123456789abcdef",
    "provider.path=/v1/chat/completions",
    "abc",
]


@pytest.mark.parametrize("argument", EXPOSED)
def test_exposed_key_is_refused_without_echo(argument: str) -> None:
    with pytest.raises(SecretExposed) as caught:
        scan_arguments(["k=1", argument], ENVIRON)
    message = str(caught.value)
    assert "argument 2" in message
    assert argument.partition("=")[2] not in message or "=" not in argument
    assert "canary" not in message


@pytest.mark.parametrize("argument", HARMLESS)
def test_harmless_argument_passes(argument: str) -> None:
    scan_arguments([argument], ENVIRON)


@pytest.mark.parametrize(
    "plain",
    [
        {"provider": {"extra_body": {"api_key": "whatever"}}},
        {"guide": {"rules": ["say hello", "use canary-4711-plain-words to log in"]}},
        {"route": {"proxy": "http://u:p@proxy:3128"}},
    ],
)
def test_key_in_composed_configuration_is_refused(plain: dict[str, object]) -> None:
    with pytest.raises(SecretExposed) as caught:
        scan_plain(plain, ENVIRON)
    assert "canary" not in str(caught.value)
