"""The laboratory of the route's tests, here too; and the one of executions."""

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


def _load(room: str) -> ModuleType:
    """Another room's conftest as a module: its laboratory is wanted here, its fixtures are not."""
    name = f"security_{room}_laboratory"
    if name not in sys.modules:
        path = Path(__file__).parents[1] / room / "conftest.py"
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


@pytest.fixture
def lab(tmp_path: Path) -> Any:
    """See tests/route/conftest.py."""
    return _load("route").Lab(tmp_path)


@pytest.fixture
def kit() -> Any:
    """See tests/experiment/conftest.py."""
    return _load("experiment").Kit()


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Any]:
    """A laboratory of executions with a store of its own."""
    made = _load("experiment").Laboratory(tmp_path, tmp_path / "store")
    yield made
    made.end_all()
