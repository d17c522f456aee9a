"""The verbs: one file each, thin over the rooms below, imported when it is used; and one line here."""

import importlib
from collections.abc import Sequence

from xspec.errors import SpecError

VERBS = {
    "report": "what is stored: the consistency gap of each arm",
    "show": "the canonical spec of an id or of overrides",
    "diff": "the fields in which two specs differ, and whether they are factors",
    "reproduce": "execute a stored or exported spec again",
    "replay": "serve stored replies again, and see whether worlds and verdicts are the same",
    "export": "a stored spec as one file, for another machine",
    "doctor": "is this route fit to be measured through? one line a finding, with what to do",
    "plan": "tasks and runs that it takes to see a difference, and what they cost",
    "gateway": "an endpoint that puts any program which calls models under a frozen route",
    "guide": "guides: generate one, look at it, check it, compare two",
    "loop": "baseline, a guide from its trajectories, the guided arm, compared",
    "query": "SQL over what is stored",
    "env": "environments of their own for benchmarks and tools: create, list, check, remove",
    "ui": "the MLflow UI over what is stored",
    "project": "bring Parquet and MLflow up to date with the journals",
    "rehearsal": "the simulated model on its own, as an endpoint",
}

YES = "--yes"

USAGE = """usage: python -m xspec [OVERRIDE…] [-m]       compile a spec and execute or continue it
       python -m xspec VERB …

  python -m xspec benchmark.limit=5 k=3                 a small first run
  python -m xspec +arm=baseline,guided -m               sweep arms, interleaved in time
  python -m xspec provider=openai +arm=guided           with the key in OPENAI_API_KEY

options:
  -m, --multirun          sweep: every combination of comma-separated values is an arm
  --retry-invalid         run trials again that came out invalid
  --accept-lock-change    go on although environment, data or key changed since the execution was begun
  --yes                   begin a paid run without asking (where the configuration says confirm: true)

verbs:
"""


def usage() -> str:
    """What `python -m xspec --help` prints."""
    return USAGE + "\n".join(f"  {name:<12}{what}" for name, what in VERBS.items())


def split_command(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """xspec's own arguments, and the command of another program that follows `--` where the verb runs one."""
    if arguments[:1] != ["gateway"] or "--" not in arguments:
        return list(arguments), []
    at = list(arguments).index("--")
    if at == len(arguments) - 1:
        raise SpecError("after -- comes the command to run, and there is none")
    return list(arguments[:at]), list(arguments[at + 1 :])


def _store_option(verb: str, arguments: Sequence[str]) -> list[str]:
    """`store=PATH`, as experiments have it, is `--store PATH` to a verb; `rehearsal` takes overrides as they are.

    What follows `--` is another program's.
    """
    if verb == "rehearsal":
        return list(arguments)
    own, command = split_command([verb, *arguments])
    own = own[1:]
    stores = [argument.partition("=")[2] for argument in own if argument.startswith("store=")]
    rest = [argument for argument in own if not argument.startswith("store=")]
    return [
        *rest,
        *(word for store in stores for word in ("--store", store)),
        *(["--", *command] if command else []),
    ]


def dispatch(arguments: Sequence[str]) -> int:
    """Runs a verb, or an experiment if the first argument is not one. Returns the exit code."""
    if arguments[:1] in (["-h"], ["--help"], ["help"]):
        print(usage())
        return 0
    if arguments and arguments[0] in VERBS:
        verb = importlib.import_module(f"xspec.cli.{arguments[0]}")
        code: int = verb.main(_store_option(arguments[0], arguments[1:]))
        return code
    from xspec.cli.run import run

    return run(arguments)
