"""Imports MLflow once, then projects each store named on standard input in a fork; answers `[exit code, last line]`."""

import contextlib
import io
import json
import os
import sys
import traceback

import mlflow  # noqa: F401 (imported before the first fork)

from xspec.tracking.__main__ import main


def project(store: str) -> tuple[int, str]:
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        try:
            code = main(store)
        except BaseException:
            traceback.print_exc()
            code = 1
    return code, (said.getvalue().strip().splitlines() or [""])[-1]


if __name__ == "__main__":
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            answers.write(json.dumps(project(line.removesuffix("\n"))) + "\n")
            answers.flush()
            os._exit(0)
        os.waitpid(child, 0)
