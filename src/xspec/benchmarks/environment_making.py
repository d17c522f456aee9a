"""Making and removing environments with uv. An environment is built aside and renamed into its place, so that
there is a whole one or none, whenever the making is interrupted.
"""

import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from xspec.benchmarks import environments
from xspec.benchmarks.worker_variables import worker_environment
from xspec.errors import EnvironmentFailed, UserError

_FOR_UV = ("UV_", "SSL_", "XDG_")
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


def create(name: str) -> bool:
    """Makes the environment unless the right one is there; returns whether it had to.

    Raises EnvironmentFailed with the last line of the program that failed; then nothing is left behind. Two
    processes that make the same one wait for each other.
    """
    entry = environments.entry(name)
    root = environments.environments_folder()
    with _lock(root, name) as lock:
        if _is_right(name):
            return False
        _sweep(root, name)
        aside = Path(tempfile.mkdtemp(prefix=_aside(name), dir=root))
        try:
            _build(name, entry, aside, lock)
            _put_in_place(aside, root / name)
        except BaseException:
            shutil.rmtree(aside, ignore_errors=True)
            raise
    return True


def remove(name: str) -> bool:
    """Removes the environment and whatever a killed making left; returns whether there was one."""
    environments.entry(name)
    root = environments.environments_folder()
    if not root.is_dir():
        return False
    with _lock(root, name):
        there = (root / name).exists()
        if there:
            _move_aside(root / name)
        _sweep(root, name)
    return there


def check(name: str) -> list[str]:
    """One sentence for each thing that is wrong with the environment: versions, or that it does not run.

    Raises EnvironmentMissing if there is none.
    """
    folder = environments.require(name)
    wrong = []
    for package, pins in _pins(name).items():
        found = environments.installed_version(folder, package)
        if found not in pins:
            wrong.append(f"{package} is {found or 'missing'} and should be {pins[0]}")
    if not wrong:
        try:
            _run(
                [environments.interpreter(folder), "-c", environments.entry(name).check],
                _own_variables(name, folder),
                "its check",
            )
        except EnvironmentFailed as error:
            wrong.append(str(error))
    return wrong


def _pins(name: str) -> dict[str, list[str | None]]:
    """Package → versions that are right; None is among them where only some machines need the package."""
    pins: dict[str, list[str | None]] = {}
    for line in environments.requirements_file(name).read_text().splitlines():
        wanted, _, marker = line.partition(";")
        package, _, version = wanted.strip().partition("==")
        pins.setdefault(package, []).extend([version, None] if marker else [version])
    return pins


def _is_right(name: str) -> bool:
    made = environments.record(name)
    return made is not None and made.get("requirements") == environments.requirements_digest(name)


def _build(name: str, entry: environments.Environment, aside: Path, lock: int) -> None:
    """Everything an environment has; the record, written last, says that nothing is missing."""
    uv = _uv()
    python = environments.interpreter(aside)
    env = {**_variables_for_uv(os.environ), **_own_variables(name, aside)}
    venv: list[str | Path] = [uv, "venv", "--quiet", "--relocatable", "--allow-existing"]
    _run([*venv, "--python", _python(entry), aside], env, "uv venv", lock)
    install: list[str | Path] = [uv, "pip", "install", "--quiet", "--no-deps", "--compile-bytecode"]
    # Linked files would be those of uv's cache: a change to one would reach every environment made later.
    install += [
        "--link-mode",
        "copy",
        "--python",
        python,
        "--requirement",
        environments.requirements_file(name),
    ]
    _run(install, env, "uv pip install", lock)
    for arguments in entry.prepare:
        given = [argument.replace("{folder}", str(aside)) for argument in arguments]
        _run([python, *given], _own_variables(name, aside), " ".join(arguments[:2]), lock)
    _run([python, "-c", entry.check], _own_variables(name, aside), "its check", lock)
    version = _run([python, "-c", "import platform; print(platform.python_version())"], env, "python", lock)
    made = {"name": name, "requirements": environments.requirements_digest(name), "python": version.strip()}
    (aside / environments.RECORD).write_text(json.dumps(made, indent=1) + "\n")


def _python(entry: environments.Environment) -> str:
    """An interpreter of a fitting version: this one, else one that is installed, else what uv is to fetch."""
    low, high = entry.python
    if low <= sys.version_info[:2] < high:
        return sys.executable
    versions = [f"{low[0]}.{minor}" for minor in range(low[1], high[1])]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [path for version in versions if (path := shutil.which(f"python{version}"))]
    candidates += [
        str(path) for version in versions for path in sorted(pyenv.glob(f"{version}.*/bin/python"))
    ]
    # A name on PATH may be the stub of a version manager that has nothing behind it.
    found = (
        path for path in candidates if subprocess.run([path, "-c", ""], capture_output=True).returncode == 0
    )
    return next(found, versions[0])


def _uv() -> str:
    beside = Path(sys.executable).with_name("uv")
    found = str(beside) if beside.is_file() else shutil.which("uv")
    if found is None:
        raise UserError("making an environment needs uv; install it with: python -m pip install uv")
    return found


def _own_variables(name: str, folder: Path) -> dict[str, str]:
    return {**worker_environment(os.environ), **environments.variables(name, folder)}


def _variables_for_uv(environ: Mapping[str, str]) -> dict[str, str]:
    """What a worker gets, plus uv's own settings, certificates and proxies: no key is among them."""
    passed = {
        key: value for key, value in environ.items() if key.startswith(_FOR_UV) or key.upper() in _PROXIES
    }
    return {**worker_environment(environ), **passed}


def _run(command: Sequence[str | Path], env: Mapping[str, str], what: str, lock: int | None = None) -> str:
    """Standard output of a command. The lock goes with it: a command that outlives xspec still holds it."""
    done = subprocess.run(
        command,
        env=dict(env),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        pass_fds=[] if lock is None else [lock],
    )
    if done.returncode != 0:
        lines = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        telling = lines[-1:] if "Traceback (most recent call last):" in lines else lines[:3]
        raise EnvironmentFailed(f"{what} failed: {'; '.join(telling) or f'exit code {done.returncode}'}")
    return done.stdout


@contextmanager
def _lock(root: Path, name: str) -> Iterator[int]:
    try:
        root.mkdir(parents=True, exist_ok=True)
        file = (root / f".{name}.lock").open("w")
    except OSError as error:
        raise UserError(f"environments cannot be kept in {root}: {error.strerror}") from None
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file.fileno()


def _aside(name: str) -> str:
    return f".{name}.aside-"


def _move_aside(folder: Path) -> None:
    folder.rename(tempfile.mkdtemp(prefix=_aside(folder.name), dir=folder.parent))


def _put_in_place(aside: Path, place: Path) -> None:
    if place.exists():
        _move_aside(place)
    aside.rename(place)
    _sweep(place.parent, place.name)


def _sweep(root: Path, name: str) -> None:
    """Removes what lies aside. Called under the lock, so nobody is building there."""
    for left in root.glob(f"{_aside(name)}*"):
        shutil.rmtree(left, ignore_errors=True)
