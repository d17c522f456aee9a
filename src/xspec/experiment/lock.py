"""The lock of a stint: what surrounded it, so that a later difference can be named.

The lock is not identity. Its `must_match` part is compared when an execution is resumed: the same spec in another
environment, on other data or with another key is not silently the same measurement.
"""

import hashlib
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import xspec
from xspec.errors import UserError
from xspec.local.model import ENGINE
from xspec.route.keys import fingerprint, read_key
from xspec.spec.members import LocalMember, OpenAIMember
from xspec.spec.models import ExperimentSpec
from xspec.spec.store import write_whole

PACKAGES = ("hydra-core", "omegaconf", "openai", "httpx2", "tenacity", "pydantic", "orjson")


class LockChanged(UserError):
    """The environment of this stint differs from that of the first one."""


def key_fingerprints(spec: ExperimentSpec, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Fingerprints of the keys the route needs, by variable. Raises UserError for a missing or malformed key."""
    names = sorted({m.api_key_env for m in spec.route.members if isinstance(m, OpenAIMember)})
    return {name: fingerprint(read_key(name, environ)) for name in names}


def make_lock(
    spec: ExperimentSpec,
    *,
    execution_id: str,
    stint: int,
    workers: int,
    launcher: str,
    worker_package: Mapping[str, str],
    bindings: Mapping[str, str],
) -> dict[str, Any]:
    """`worker_package`: what the benchmark's worker says it runs; `bindings`: addresses of members xspec started."""
    root = Path(xspec.__file__).resolve().parent
    return {
        "execution_id": execution_id,
        "stint": stint,
        "spec_id": spec.id,
        "must_match": {
            "python": platform.python_version(),
            "platform": f"{platform.system()} {platform.machine()}",
            "packages": {name: importlib.metadata.version(name) for name in _packages(spec)},
            "code": _code_digest(root),
            "worker": dict(worker_package),
            "manifest": spec.benchmark.manifest,
            "keys": key_fingerprints(spec),
        },
        "xspec": xspec.__version__,
        "commit": _commit(root),
        "system": platform.platform(),
        "interpreter": sys.implementation.name,
        "workers": workers,
        "launcher": launcher,
        "bindings": dict(bindings),
        "served": {},
    }


def _packages(spec: ExperimentSpec) -> tuple[str, ...]:
    """The packages that a result depends on; the engine of a local model is one of them."""
    local = any(isinstance(member, LocalMember) for member in spec.route.members)
    return (*PACKAGES, ENGINE) if local else PACKAGES


def write_lock(path: Path, lock: Mapping[str, Any]) -> None:
    write_whole(path, json.dumps(lock, indent=1, sort_keys=True).encode())


def differences(first: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """One line for each leaf of `must_match` that differs."""
    a, b = _leaves(first["must_match"]), _leaves(now["must_match"])
    return [
        f"{name}: {a.get(name)} then, {b.get(name)} now"
        for name in sorted(a.keys() | b.keys())
        if a.get(name) != b.get(name)
    ]


def refuse_change(first: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raises LockChanged if a resumed execution would go on in another environment."""
    changed = differences(first, now)
    if changed:
        raise LockChanged(
            f"execution {first['execution_id']} was begun in another environment ({'; '.join(changed[:3])}"
            f"{f'; and {len(changed) - 3} more' if len(changed) > 3 else ''}); go on all the same with "
            f"--accept-lock-change, or begin anew with `python -m xspec reproduce {first['spec_id']}`"
        )


def _leaves(value: Any, where: str = "") -> dict[str, Any]:
    if not isinstance(value, Mapping):
        return {where: value}
    leaves: dict[str, Any] = {}
    for key, item in value.items():
        leaves.update(_leaves(item, f"{where}.{key}" if where else key))
    return leaves


def _code_digest(root: Path) -> str:
    """Digest of xspec's own source, so that an edited checkout is noticed where a version number is not."""
    state = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        state.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return state.hexdigest()[:16]


def _commit(root: Path) -> str | None:
    """Commit of the checkout xspec runs from, with `+dirty` if it has changes; None outside a checkout."""
    if not (root.parents[1] / "pyproject.toml").exists():
        return None
    try:
        described = subprocess.run(
            ["git", "-C", str(root), "describe", "--always", "--abbrev=40", "--dirty=+dirty", "--match="],
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return described.stdout.strip() or None
