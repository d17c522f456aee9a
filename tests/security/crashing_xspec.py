"""`python -m xspec` with a mistake in it: reading a reply raises, with the key in reach of every frame above."""

import faulthandler
import os
import resource
import signal
import sys
from typing import Any, NoReturn

from xspec.__main__ import main
from xspec.route import exchange


def _mistake(*given: Any) -> NoReturn:
    if os.environ["MISTAKE"] == "abort":
        os.kill(os.getpid(), signal.SIGABRT)
    raise ZeroDivisionError("a mistake in xspec")


if __name__ == "__main__":
    faulthandler.enable(all_threads=True)
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
    exchange.read_completion = _mistake
    sys.exit(main())
