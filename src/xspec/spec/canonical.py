"""Canonical bytes and the digests made of them: the only serializer that identity may use."""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from xspec.errors import SpecError

SCHEME = 1
"""Version of the hash scheme. It stands inside every hashed spec, so a change here can never rename old ids."""

ID_DIGITS = 16
SPEC_ID = re.compile(r"xs-[0-9a-f]{16}")
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def canonical_bytes(value: Any) -> bytes:
    """UTF-8 JSON with sorted keys, no spaces, and one spelling a number.

    Integral floats are written as integers (`0.0` and `0` are one temperature), other floats by their shortest
    repr. Raises SpecError on NaN, infinities, keys that are not text, lone surrogates and foreign types.
    """
    try:
        return json.dumps(
            _plain(value, "$"), sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":")
        ).encode()
    except UnicodeEncodeError as error:
        raise SpecError(f"text with a lone surrogate at offset {error.start} has no UTF-8 form") from None


def digest_of(data: bytes) -> str:
    """`sha256:` and 64 hex digits: how blobs, prompts and schemas are named."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def short_id(prefix: str, data: bytes) -> str:
    """`xs-…` or `xc-…`. The letters keep YAML and databases from reading an id as a number."""
    return f"{prefix}-{hashlib.sha256(data).hexdigest()[:ID_DIGITS]}"


def _plain(value: Any, where: str) -> Any:
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            raise SpecError(f"{where} is {value}; only finite numbers have canonical bytes")
        return int(value) if value.is_integer() else value
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise SpecError(f"{where} has the key {key!r} of type {type(key).__name__}; keys are text")
        return {key: _plain(item, f"{where}.{key}") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, f"{where}[{i}]") for i, item in enumerate(value)]
    raise SpecError(f"{where} is a {type(value).__name__}; only JSON types have canonical bytes")
