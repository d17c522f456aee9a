"""Imports that a package tries in case its user wants them, and that xspec never does."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import MetaPathFinder


class _Absent(MetaPathFinder):
    """Says of some packages that they are not installed."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        if fullname in self._names:
            raise ModuleNotFoundError(f"xspec leaves {fullname} out here", name=fullname)


@contextmanager
def left_out(*names: str) -> Iterator[None]:
    """Within it these packages cannot be imported anew; whoever does not use them saves their time."""
    absent = _Absent(names)
    sys.meta_path.insert(0, absent)
    try:
        yield
    finally:
        sys.meta_path.remove(absent)
