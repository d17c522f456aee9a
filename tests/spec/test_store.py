"""The store gives back what was put in, or says what is wrong."""

import json
from pathlib import Path

import pytest

from xspec.errors import StoreError
from xspec.spec.models import ExperimentSpec
from xspec.spec.store import Store


def test_spec_round_trip(tmp_path: Path, spec: ExperimentSpec) -> None:
    store = Store(tmp_path / "s")
    store.put_spec(spec)
    assert Store(tmp_path / "s").spec(spec.id) == spec
    assert Store(tmp_path / "s").spec(spec.id).id == spec.id


def test_changed_bytes_are_noticed(tmp_path: Path, spec: ExperimentSpec) -> None:
    store = Store(tmp_path)
    path = store.put_spec(spec)
    path.write_bytes(path.read_bytes().replace(b'"k":5', b'"k":6'))
    with pytest.raises(StoreError, match="was changed"):
        store.spec(spec.id)
    with pytest.raises(StoreError, match="was changed"):
        store.put_spec(spec)


def test_prefix_unknown_and_ambiguous_ids(tmp_path: Path, spec: ExperimentSpec) -> None:
    store = Store(tmp_path)
    store.put_spec(spec)
    assert store.find_spec_id(spec.id[:7]) == spec.id
    assert store.find_spec_id(spec.id[3:9]) == spec.id
    with pytest.raises(StoreError, match="no spec"):
        store.find_spec_id("xs-ffffffffffff")
    (store.path / "specs" / f"{spec.id[:-1]}g.json").write_bytes(b"")
    with pytest.raises(StoreError, match="fits 2 specs"):
        store.find_spec_id("xs-")


def test_newer_layout_and_foreign_marker_are_refused(tmp_path: Path) -> None:
    Store(tmp_path)
    (tmp_path / "store.json").write_text(json.dumps({"layout": 99}))
    with pytest.raises(StoreError, match="update xspec"):
        Store(tmp_path)
    (tmp_path / "store.json").write_text("nonsense")
    with pytest.raises(StoreError, match="unreadable"):
        Store(tmp_path)


def test_store_in_a_file_s_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="is not a folder"):
        Store(tmp_path / "file")


def test_blob_is_checked(tmp_path: Path) -> None:
    store = Store(tmp_path)
    digest = store.put_blob(b"prompt")
    assert store.blob(digest) == b"prompt"
    store.blob_path(digest).write_bytes(b"prompT")
    with pytest.raises(StoreError, match="was changed"):
        store.blob(digest)


def test_no_temporary_files_stay(tmp_path: Path, spec: ExperimentSpec) -> None:
    store = Store(tmp_path)
    store.put_spec(spec)
    store.put_blob(b"x")
    assert not [p for p in tmp_path.rglob("*") if p.name.startswith(".")]
