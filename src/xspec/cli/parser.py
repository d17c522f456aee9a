"""The argument parser of a verb: wrong arguments are the user's input, so they end in one line like any other."""

import argparse
from typing import NoReturn

from xspec.errors import UserError


class VerbParser(argparse.ArgumentParser):
    """An argument parser that raises UserError instead of printing its usage and exiting."""

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message}; see `{self.prog} --help`")
