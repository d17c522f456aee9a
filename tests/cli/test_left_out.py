"""What is left out of an import is absent to it alone."""

import importlib
import sys

import pytest

from xspec.left_out import left_out


def test_a_package_is_absent_within_and_there_again_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    with left_out("colorsys"):
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module("colorsys")
        importlib.import_module("wave")
    assert importlib.import_module("colorsys").__name__ == "colorsys"


def test_what_is_loaded_already_stays() -> None:
    with left_out("json"):
        assert importlib.import_module("json") is sys.modules["json"]
