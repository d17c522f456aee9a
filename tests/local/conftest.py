"""A command line of xspec with a home and a store of its own, and the local model where it is installed."""

import contextlib
import io
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from xspec.__main__ import main
from xspec.errors import UserError
from xspec.local.model import require_local
from xspec.records.executions import ExecutionFolder, executions_of
from xspec.spec.store import Store

MODEL = "SmolLM2-135M-Instruct"
GGUF = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


@dataclass(frozen=True)
class Commands:
    """Runs command lines in this process, all with one store."""

    root: Path

    @property
    def store(self) -> Store:
        return Store(self.root / "store")

    def run(self, *arguments: str) -> tuple[int, str]:
        """Exit code, and what went to standard error."""
        verb = "=" not in arguments[0]
        store = ["--store", str(self.root / "store")] if verb else [f"store={self.root / 'store'}"]
        out, err = io.StringIO(), io.StringIO()
        with contextlib.chdir(self.root), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main([*arguments, *store])
        return code, err.getvalue()

    def executions(self) -> list[ExecutionFolder]:
        return executions_of(self.store, None)

    def spec(self, folder: ExecutionFolder) -> dict[str, Any]:
        plain: dict[str, Any] = json.loads(self.store.spec_bytes(folder.info.spec_id))
        return plain


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Commands:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SOME_API_KEY", "not-for-children")
    return Commands(tmp_path)


@pytest.fixture(scope="session")
def local_model() -> Path:
    """The model's file. Skips if the extra is not installed; under CI that is a failure."""
    try:
        return require_local(MODEL, GGUF)
    except UserError as error:
        if os.environ.get("CI") == "true":
            pytest.fail(f"continuous integration must run these tests: {error}")
        pytest.skip(str(error))
