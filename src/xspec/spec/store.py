"""The store: a folder that holds every spec, blob and execution, and can be moved or copied as it is.

store.json              the scheme of the layout
specs/xs-….json         canonical bytes; the name is their id
blobs/sha256-…          whatever a digest in a spec stands for: manifests, prompts, guides, certificates
cache/                  may be deleted at any time
executions/ex-…/        see xspec.records.executions
"""

import contextlib
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from xspec.errors import DiskFailed, StoreError
from xspec.spec.canonical import SPEC_ID, digest_of, short_id
from xspec.spec.models import ExperimentSpec

FOLDERS = ("specs", "blobs", "cache", "executions")
LAYOUT = 1


class Store:
    """Opens or makes the store at `path`. Raises StoreError if it is of a newer layout or cannot be written."""

    def __init__(self, path: Path | str, *, create: bool = True) -> None:
        self.path = Path(path).absolute()
        self._made_here = False
        marker = self.path / "store.json"
        if self.path.exists() and not self.path.is_dir():
            raise StoreError(f"store {self.path} is not a folder; choose another with store=PATH")
        if marker.exists():
            self._check_layout(marker)
            if create and not os.access(self.path, os.W_OK):
                raise StoreError(f"store {self.path} is not writable; choose another with store=PATH")
            for folder in FOLDERS[:2]:
                if not (self.path / folder).is_dir():
                    raise StoreError(
                        f"store {self.path} has no folder {folder}/: it was not copied whole; restore it from where it "
                        "came, or choose another with store=PATH"
                    )
        elif not create and self.path.is_dir() and any(self.path.iterdir()):
            raise StoreError(
                f"{self.path} has no store.json, so it is no store of xspec; name another with store=PATH"
            )
        elif create:
            try:
                for folder in FOLDERS:
                    (self.path / folder).mkdir(parents=True, exist_ok=True)
                write_whole(marker, json.dumps({"layout": LAYOUT}).encode())
                self._made_here = True
            except (OSError, DiskFailed) as error:
                why = error.reason if isinstance(error, DiskFailed) else error.strerror
                raise StoreError(
                    f"store {self.path} cannot be written ({why}); choose another with store=PATH"
                ) from None

    @staticmethod
    def _check_layout(marker: Path) -> None:
        try:
            layout = json.loads(marker.read_bytes())["layout"]
        except (OSError, ValueError, KeyError, TypeError):
            raise StoreError(
                f"{marker} is unreadable or not xspec's; choose another store with store=PATH"
            ) from None
        if not isinstance(layout, int) or layout > LAYOUT:
            raise StoreError(
                f"store {marker.parent} has layout {layout}; this xspec knows up to {LAYOUT}: update xspec"
            )

    def discard_if_made_here(self) -> None:
        """Takes back a store that this object made and that holds no execution: refused input leaves nothing."""
        if self._made_here and not any(self.path.glob("executions/ex-*")):
            for name in FOLDERS:
                shutil.rmtree(self.path / name, ignore_errors=True)
            (self.path / "store.json").unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                self.path.rmdir()
            self._made_here = False

    # specs

    def put_spec(self, spec: ExperimentSpec) -> Path:
        """Keeps the canonical bytes under their id; returns where."""
        path = self.spec_path(spec.id)
        if not path.exists():
            write_whole(path, spec.canonical())
        else:
            self.spec_bytes(spec.id)
        return path

    def spec_path(self, spec_id: str) -> Path:
        return self.path / "specs" / f"{spec_id}.json"

    def spec_bytes(self, spec_id: str) -> bytes:
        """The stored canonical bytes, checked against the id."""
        path = self.spec_path(spec_id)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            raise StoreError(
                f"no spec {spec_id} in {self.path}; `python -m xspec report` lists what there is"
            ) from None
        found = short_id("xs", data)
        if found != spec_id:
            raise StoreError(
                f"{path} holds bytes of {found}, not of {spec_id}: it was changed; restore or delete it"
            )
        return data

    def spec(self, spec_id: str) -> ExperimentSpec:
        """The stored spec. StoreError if its bytes are not those of the id, or not a spec of this version."""
        return _parsed(spec_id, self.spec_bytes(spec_id))

    def adopt_spec(self, data: bytes) -> ExperimentSpec:
        """Keeps canonical bytes that were made elsewhere; returns the spec. Raises StoreError if they are none."""
        spec = _parsed(short_id("xs", data), data)
        self.put_spec(spec)
        return spec

    def find_spec_id(self, text: str) -> str:
        """The one stored id that starts with `text` (`xs-` may be left out)."""
        wanted = text if text.startswith("xs-") else f"xs-{text}"
        found = sorted(p.stem for p in (self.path / "specs").glob("xs-*.json") if p.stem.startswith(wanted))
        if len(found) == 1:
            return found[0]
        if not found:
            raise StoreError(f"no spec {text!r} in {self.path}; `python -m xspec report` lists what there is")
        raise StoreError(f"{text!r} fits {len(found)} specs: {', '.join(found[:5])}; give more digits")

    @staticmethod
    def looks_like_id(text: str) -> bool:
        """Whether `text` is meant as a spec id or the beginning of one."""
        return text.startswith("xs-") and SPEC_ID.fullmatch(text.ljust(19, "0")) is not None

    # blobs

    def put_blob(self, data: bytes) -> str:
        """Keeps `data` under its digest; returns the digest."""
        digest = digest_of(data)
        path = self.blob_path(digest)
        if not path.exists():
            write_whole(path, data)
        return digest

    def blob_path(self, digest: str) -> Path:
        return self.path / "blobs" / digest.replace(":", "-")

    def blob(self, digest: str) -> bytes:
        """The bytes a digest stands for, checked."""
        path = self.blob_path(digest)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            raise StoreError(
                f"blob {digest[:19]}… is missing from {self.path / 'blobs'}; restore it from a backup"
            ) from None
        if digest_of(data) != digest:
            raise StoreError(f"{path} does not hold what its name says: it was changed; restore or delete it")
        return data

    def json_blob(self, digest: str) -> Any:
        return json.loads(self.blob(digest))

    # cache: a name that stands for a blob for as long as nothing it depends on changes

    def cached_digest(self, name: str) -> str | None:
        """The digest kept under `name`, if it and its blob are there."""
        try:
            digest = (self.path / "cache" / name).read_text().strip()
        except OSError:
            return None
        return digest if self.blob_path(digest).exists() else None

    def cache_digest(self, name: str, digest: str) -> None:
        (self.path / "cache").mkdir(exist_ok=True)
        write_whole(self.path / "cache" / name, digest.encode())


def _parsed(spec_id: str, data: bytes) -> ExperimentSpec:
    try:
        spec = ExperimentSpec.model_validate_json(data)
    except ValidationError as error:
        where = ".".join(str(part) for part in error.errors()[0]["loc"]) or "its root"
        raise StoreError(f"spec {spec_id} does not fit this version of xspec (at {where})") from None
    if spec.canonical() != data:
        raise StoreError(f"spec {spec_id} is not in canonical form: it was not written by xspec")
    return spec


def write_whole(path: Path, data: bytes) -> None:
    """Writes a file so that readers see all of it or nothing, also after a crash. Raises DiskFailed."""
    try:
        _write_whole(path, data)
    except OSError as error:
        raise DiskFailed(f"cannot write {path}", error.strerror or str(error)) from None


def _write_whole(path: Path, data: bytes) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
