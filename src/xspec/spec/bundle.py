"""A spec and every blob it stands on, in one JSON file that another machine can execute."""

import base64
import json
from collections.abc import Iterator
from typing import Any

from xspec.errors import StoreError
from xspec.spec.canonical import DIGEST, digest_of, short_id
from xspec.spec.models import ExperimentSpec
from xspec.spec.store import Store

FORMAT = 1


def bundle(store: Store, spec_id: str) -> bytes:
    """The bundle of a stored spec. Raises StoreError if the spec or a blob is missing or was changed."""
    data = store.spec_bytes(spec_id)
    blobs = {digest: _text(store.blob(digest)) for digest in sorted(set(_digests(json.loads(data))))}
    content = {"xspec_bundle": FORMAT, "spec_id": spec_id, "spec": data.decode(), "blobs": blobs}
    return json.dumps(content, indent=1, ensure_ascii=False).encode() + b"\n"


def unbundle(store: Store, data: bytes, name: str) -> ExperimentSpec:
    """Puts a bundle's spec and blobs into the store. Everything is checked before anything is written."""
    try:
        content = json.loads(data)
        version, spec_id, spec = content["xspec_bundle"], content["spec_id"], content["spec"].encode()
        blobs = {digest: _bytes(value) for digest, value in content["blobs"].items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise StoreError(f"{name} is not a bundle made by `python -m xspec export spec ID -o FILE`") from None
    if version != FORMAT:
        raise StoreError(
            f"{name} is a bundle of format {version}; this xspec knows format {FORMAT}: update xspec"
        )
    if short_id("xs", spec) != spec_id:
        raise StoreError(f"{name}: the spec in it is not {spec_id}: the file was changed")
    for digest, blob in blobs.items():
        if digest_of(blob) != digest:
            raise StoreError(f"{name}: a blob is not {digest[:19]}…: the file was changed")
    missing = set(_digests(json.loads(spec))) - set(blobs)
    if missing:
        raise StoreError(f"{name} lacks {len(missing)} of the blobs its spec stands on; export it again")
    for blob in blobs.values():
        store.put_blob(blob)
    return store.adopt_spec(spec)


def _digests(value: Any) -> Iterator[str]:
    """Every digest in plain data, wherever it stands."""
    if isinstance(value, dict):
        for item in value.values():
            yield from _digests(item)
    elif isinstance(value, list):
        for item in value:
            yield from _digests(item)
    elif isinstance(value, str) and DIGEST.fullmatch(value):
        yield value


def _text(data: bytes) -> str | dict[str, str]:
    """Text as it is, so that a person can read the prompts and rules; anything else as base64."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def _bytes(value: str | dict[str, str]) -> bytes:
    return value.encode() if isinstance(value, str) else base64.b64decode(value["base64"], validate=True)
