"""`python -m xspec doctor [OVERRIDE…]`: is this route fit to be measured through?"""

import shutil
import sys
from textwrap import wrap

from xspec.cli.parser import VerbParser
from xspec.cli.run import compile_plain
from xspec.doctor.examine import examine
from xspec.doctor.findings import INDENT, Finding, exit_code
from xspec.report.sentences import SIMULATED
from xspec.spec.compose import compose

_ENDS = {
    0: "all fine",
    1: "it works; the notes marked ! bear on what a measurement would mean",
    3: "it cannot work like this: mend what is called a problem",
}


def main(arguments: list[str]) -> int:
    parser = VerbParser(
        prog="python -m xspec doctor",
        description="Looks at key, surroundings, route and model, and makes one trial. Costs about a dozen short calls "
        "and that trial. Exit code 0: all fine, 1: something that matters, 3: it cannot work.",
    )
    parser.add_argument(
        "overrides", nargs="*", metavar="OVERRIDE", help="as for an experiment: provider=openai"
    )
    parser.add_argument("--no-trial", action="store_true", help="leave out the trial")
    parser.add_argument("--store", default=None, metavar="PATH")
    options = parser.parse_args(arguments)
    overrides = [*options.overrides, *([f"store={options.store}"] if options.store else [])]
    compiled, store = compile_plain(compose(overrides))
    if any(member.kind == "rehearsal" for member in compiled.spec.route.members):
        print(SIMULATED)
    code = exit_code(examine(compiled, store, _say, trial=not options.no_trial))
    print(f"{'':8} {_ENDS[code]} (exit code {code})")
    return code


def _say(finding: Finding) -> None:
    encoding = sys.stdout.encoding or "ascii"
    unicode = encoding.lower().startswith("utf")
    line = finding.line() if unicode else finding.line("->").replace("\N{HORIZONTAL ELLIPSIS}", "...")
    if sys.stdout.isatty():
        width = shutil.get_terminal_size().columns
        line = "\n".join(wrap(line, width, subsequent_indent=" " * INDENT, break_on_hyphens=False))
    print(line.encode(encoding, "replace").decode(encoding), flush=True)
