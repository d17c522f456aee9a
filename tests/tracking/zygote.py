"""Imports MLflow once, then projects the store named on each line of standard input, in forks.

`[how many at once, store, further words]` comes in, `[[exit code, last line said], …]` goes out.
"""

import contextlib
import io
import json
import os
import sys
import traceback

import warm_mlflow  # noqa: F401 (imported before the first fork)

from xspec.tracking.__main__ import main


def project(store: str, *words: str) -> tuple[int, str]:
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        try:
            code = main(store, *words)
        except BaseException:
            traceback.print_exc()
            code = 1
    return code, (said.getvalue().strip().splitlines() or [""])[-1]


def forked(store: str, *words: str) -> tuple[int, int]:
    """Begins a projection; returns the child and the descriptor that its answer comes from."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(theirs, json.dumps(project(store, *words)).encode())
        os._exit(0)
    os.close(theirs)
    return child, ours


def answer_of(child: int, ours: int) -> tuple[int, str]:
    with open(ours, "rb") as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    code, line = json.loads(said or b'[-1, "ended without an answer"]')
    return code, line


if __name__ == "__main__":
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        count, *given = json.loads(line)
        begun = [forked(*given) for _ in range(count)]
        print(json.dumps([answer_of(*one) for one in begun]), file=answers, flush=True)
