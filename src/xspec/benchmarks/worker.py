"""The program of every benchmark worker: `<interpreter> -P worker.py CONTROL_FD MODULE_FILE`.

It runs under the interpreter of the benchmark's environment, where xspec is not installed. Only the files of
this folder that import the standard library alone are used, by path.
"""

import os
import socket
import sys
from pathlib import Path
from types import ModuleType


def _bare_packages() -> None:
    """Makes `xspec.benchmarks.<file>` importable without running the packages' own `__init__`."""
    here = Path(__file__).resolve().parent
    for name, folder in (("xspec", here.parent), ("xspec.benchmarks", here)):
        package = ModuleType(name)
        package.__path__ = [str(folder)]
        sys.modules[name] = package


def main(control_fd: int, module: Path) -> None:
    """Serves until the control socket closes. Whatever the benchmark prints goes to stderr."""
    os.dup2(2, 1)
    control = socket.socket(fileno=control_fd)
    control.set_inheritable(False)
    from xspec.benchmarks.zygote import serve

    serve(control, module)


if __name__ == "__main__":
    _bare_packages()
    main(int(sys.argv[1]), Path(sys.argv[2]))
