"""The environment variables a worker gets. Everything else, every key among it, stays out."""

from collections.abc import Collection, Mapping

_PASSED = frozenset(
    {"PATH", "HOME", "LANG", "LANGUAGE", "TMPDIR", "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"}
)
_PASSED_PREFIXES = ("LC_", "OPENBLAS_", "OMP_")

_DEFAULTS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

_FIXED = {
    # One order of sets, one local time and one encoding on every machine: a manifest has the same bytes
    # everywhere.
    "PYTHONHASHSEED": "0",
    "PYTHONUTF8": "1",
    "PYTHONIOENCODING": "utf-8:backslashreplace",
    "PYTHONUNBUFFERED": "1",
    "TZ": "UTC",
}


def worker_environment(environ: Mapping[str, str], also: Collection[str] = ()) -> dict[str, str]:
    """The allow-listed part of `environ`, with the variables named in `also`, plus what makes a worker repeatable."""
    passed = {
        name: value
        for name, value in environ.items()
        if name in _PASSED or name in also or name.startswith(_PASSED_PREFIXES)
    }
    return _DEFAULTS | passed | _FIXED
