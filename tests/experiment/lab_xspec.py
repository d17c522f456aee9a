"""`python -m xspec` with the benchmark `lab` among the known ones: what the tests start as a process."""

from pathlib import Path

from xspec.__main__ import main
from xspec.benchmarks import BENCHMARKS, Launch

BENCHMARKS["lab"] = Launch(Path(__file__).with_name("lab_benchmark.py"))

if __name__ == "__main__":
    raise SystemExit(main())
