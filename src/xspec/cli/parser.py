"""The argument parser of a verb: wrong arguments are the user's input, so they end in one line like any other."""

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn

from xspec.errors import UserError


class VerbParser(argparse.ArgumentParser):
    """An argument parser that raises UserError instead of printing its usage and exiting.

    Options and what is no option may stand in any order: argparse by itself takes no override after `--store PATH`.
    """

    _intermixed = False

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message}; see `{self.prog} --help`")

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """argparse's own way comes back here; a parser of verbs leaves the order to the parsers of its verbs."""
        if self._intermixed or self._subparsers is not None:
            return super().parse_known_args(args, namespace)
        self._intermixed = True
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._intermixed = False
