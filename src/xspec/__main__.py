"""`python -m xspec`: a verb goes to its command, anything else to Hydra as overrides of an experiment."""

import os
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command line (without the program's name); returns its exit code. Bad input is one line, no traceback."""
    from xspec.cli import dispatch
    from xspec.cli.environment import load_dotenv
    from xspec.errors import XspecError
    from xspec.spec.secrets import scan_arguments

    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        load_dotenv()
        scan_arguments(given, os.environ)
        return dispatch(given)
    except XspecError as error:
        print(f"xspec: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


if __name__ == "__main__":
    raise SystemExit(main())
