"""Keeping keys out of everything that is written down: command lines, configuration, guides.

Hydra echoes overrides in errors, job lines and files, so a key must be refused before Hydra sees it.
Nothing here ever returns or raises a text that holds the suspicious value.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from xspec.errors import SecretExposed

_KEY_NAME = re.compile(
    r"(?:^|[._-])(?:api_?key|key|token|access_?token|auth_?token|secret|secret_?key|password|passwd|authorization"
    r"|bearer|credentials?)$",
    re.IGNORECASE,
)
_KEY_VALUE = re.compile(
    r"(?<![A-Za-z0-9])(?:sk|pk|rk|gsk|hf|ghp|gho|ghs|glpat|xox[abpr]|AIza|AKIA|nvapi|tvly|r8)[-_]?[A-Za-z0-9][A-Za-z0-9_-]{14,}"
    r"|(?<![A-Za-z0-9])eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"
    r"|\bbearer\s+\S{8,}",
    re.IGNORECASE,
)
_MIXED_TOKEN = re.compile(
    r"(?<![A-Za-z0-9_/.+-])(?=[A-Za-z0-9_-]*[a-z])(?=[A-Za-z0-9_-]*[A-Z])(?=[A-Za-z0-9_-]*[0-9])[A-Za-z0-9_-]{32,}"
)
_USER_INFO = re.compile(r"://[^/?#@\s]*@")
_KEY_VARIABLE = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS?)$")

_VARIABLE_NAME = re.compile(r"[A-Z][A-Z0-9_]{0,60}")
_KEY_ENV = "api_key_env"
_NO_VARIABLE = "should name a variable in capitals, like OPENAI_API_KEY, and does not"
_PAIR = re.compile(r"[{,]\s*['\"]?([A-Za-z_][\w.-]*)['\"]?\s*:\s*([^,{}\[\]]*)")
"""A name and its value inside an override like `pool=[{name: value}]`."""

WHAT_TO_DO = "put the key into a variable or .env and name it: provider.api_key_env=NAME"


def key_values(environ: Mapping[str, str], names: Iterable[str] = ()) -> list[str]:
    """Values of the variables that hold keys: those named, and those whose name says so (8 characters or more)."""
    wanted = set(names)
    return [
        value.strip()
        for name, value in environ.items()
        if (name in wanted or _KEY_VARIABLE.search(name.upper())) and len(value.strip()) >= 8
    ]


def why_secret(text: str, known: Sequence[str]) -> str | None:
    """Why `text` must not be written down, or None. The reason doesn't contain it."""
    if any(value in text for value in known):
        return "holds the value of a key variable"
    if _USER_INFO.search(text):
        return "is an address with user info"
    if _KEY_VALUE.search(text) or _MIXED_TOKEN.search(text):
        return "looks like a key"
    return None


def scan_arguments(arguments: Sequence[str], environ: Mapping[str, str]) -> None:
    """Raises SecretExposed if an argument names or holds a key. Call it before Hydra sees the command line."""
    pairs = [_pairs(argument) for argument in arguments]
    named = [value for found in pairs for name, value in found if name.endswith(_KEY_ENV)]
    known = key_values(environ, named)
    for number, (argument, found) in enumerate(zip(arguments, pairs, strict=True), start=1):
        reason = why_secret(argument, known)
        for name, value in found:
            if reason is None and _KEY_NAME.search(name):
                reason = f"sets {name}, which sounds like a key"
            if reason is None and name.endswith(_KEY_ENV) and not _VARIABLE_NAME.fullmatch(value):
                reason = _NO_VARIABLE
        if reason is not None:
            raise SecretExposed(f"argument {number} {reason} (not shown); {WHAT_TO_DO}")


def scan_command(words: Sequence[str], environ: Mapping[str, str]) -> None:
    """Raises SecretExposed if the command line of another program holds the value of a key variable.

    Hydra never sees it and it is not written down, so that it may well speak of keys and tokens.
    """
    known = key_values(environ)
    for number, word in enumerate(words, start=1):
        if any(value in word for value in known):
            raise SecretExposed(
                f"word {number} of the command holds the value of a key variable (not shown); a command behind the "
                "gateway needs no key but the one in its OPENAI_API_KEY"
            )


def _pairs(argument: str) -> list[tuple[str, str]]:
    """What an override sets, with the alternatives of a sweep one by one, and what the mappings in it set."""
    name, _, value = argument.partition("=")
    own = [(name.lstrip("+~-"), item) for item in value.split(",")]
    cleaned = [(name, item.strip().strip("'\"")) for name, item in (*own, *_PAIR.findall(argument))]
    return [(name, item) for name, item in cleaned if item not in ("", "null")]


def scan_plain(value: Any, environ: Mapping[str, str], where: str = "", names: Sequence[str] = ()) -> None:
    """Raises SecretExposed if composed configuration, or a text it brings in, holds a key.

    `names` are variables that hold keys, besides those that `value` itself names as such.
    """
    _scan(value, key_values(environ, [*names, *key_variables(value)]), where)


def key_variables(value: Any) -> list[str]:
    """The variables that configuration names as holding a key, wherever it does so."""
    if isinstance(value, Mapping):
        own = [item for key, item in value.items() if key == _KEY_ENV and isinstance(item, str)]
        return own + [name for item in value.values() for name in key_variables(item)]
    if isinstance(value, list | tuple):
        return [name for item in value for name in key_variables(item)]
    return []


def _scan(value: Any, known: Sequence[str], where: str) -> None:
    if isinstance(value, Mapping):
        for key, item in value.items():
            inner = f"{where}.{key}" if where else str(key)
            if isinstance(item, str) and item and _KEY_NAME.search(str(key)):
                raise SecretExposed(f"{inner} sounds like a key (its value is not shown); {WHAT_TO_DO}")
            if key == _KEY_ENV and isinstance(item, str) and not _VARIABLE_NAME.fullmatch(item):
                raise SecretExposed(f"{inner} {_NO_VARIABLE} (not shown); {WHAT_TO_DO}")
            _scan(item, known, inner)
    elif isinstance(value, list | tuple):
        for i, item in enumerate(value):
            _scan(item, known, f"{where}[{i}]")
    elif isinstance(value, str):
        reason = why_secret(value, known)
        if reason is not None:
            raise SecretExposed(f"{where} {reason} (not shown); {WHAT_TO_DO}")
