"""`python -m xspec` in a process whose files end at so many bytes (the first argument)."""

import resource
import signal
import sys

from xspec.__main__ import main

if __name__ == "__main__":
    size = int(sys.argv.pop(1))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    sys.exit(main())
