"""Environments: folders with an interpreter and pinned packages of their own, for what cannot live in xspec's.

A new one is a list of pinned packages in `requirements/` and one entry in ENVIRONMENTS. They are made by
`python -m xspec env create NAME` (see xspec.benchmarks.environment_making).
"""

import hashlib
import importlib.metadata
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from xspec.errors import EnvironmentMissing, UserError

FOLDER_VARIABLE = "XSPEC_ENVIRONMENTS"
"""Names another folder for environments than the one beside xspec's own packages."""

RECORD = "xspec-environment.json"
"""Written last of all into an environment: what it was made from."""

_REQUIREMENTS = Path(__file__).resolve().parent / "requirements"


@dataclass(frozen=True, slots=True)
class Environment:
    """How one environment is made and used.

    `python` are the versions it may have, from the first up to and without the second. `prepare` are arguments
    of its interpreter, run once everything is installed; `check` is Python that must run in it without an error.
    `variables` are set for every process of it; `{folder}` stands for its folder.
    """

    what: str
    package: str
    python: tuple[tuple[int, int], tuple[int, int]]
    check: str
    prepare: tuple[tuple[str, ...], ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)


_NO_DOTENV = {"PYTHON_DOTENV_DISABLED": "1"}
"""Both packages look for an `.env` in the folders above themselves and would load the user's keys from it."""

ENVIRONMENTS: dict[str, Environment] = {
    "appworld": Environment(
        what="the engine of the benchmark appworld, with its code unpacked",
        package="appworld",
        python=((3, 11), (3, 14)),
        prepare=(
            ("-m", "appworld.cli", "install"),
            ("-m", "compileall", "-q", "{folder}/lib"),
        ),
        check="import appworld, appworld.apps.admin.models; from IPython.terminal.embed import "
        "InteractiveShellEmbed as Shell; assert Shell().run_cell('1 + 1').success",
        variables={
            "APPWORLD_CACHE": "{folder}/appworld-cache",
            "IPYTHONDIR": "{folder}/ipython",
            **_NO_DOTENV,
        },
    ),
    "altk": Environment(
        what="ALTK-Evolve, which writes guidelines from trajectories",
        package="altk-evolve-core",
        python=((3, 12), (3, 14)),
        check="import altk_evolve",
        variables={"LITELLM_LOCAL_MODEL_COST_MAP": "True", **_NO_DOTENV},
    ),
}


def environments_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Where environments are made."""
    named = environ.get(FOLDER_VARIABLE)
    return Path(named).expanduser().absolute() if named else Path(sys.prefix) / "xspec-environments"


def entry(name: str) -> Environment:
    """The entry of that name. Raises UserError for an unknown one."""
    if name not in ENVIRONMENTS:
        raise UserError(f"there is no environment {name!r}; known: {', '.join(ENVIRONMENTS)}")
    return ENVIRONMENTS[name]


def requirements_file(name: str) -> Path:
    """The pinned packages of an environment, one a line, without registry addresses."""
    return _REQUIREMENTS / f"{name}.txt"


def requirements_digest(name: str) -> str:
    return "sha256:" + hashlib.sha256(requirements_file(name).read_bytes()).hexdigest()


def create_command(name: str) -> str:
    """What a user runs to have it."""
    return f"python -m xspec env create {name}"


def record(name: str) -> dict[str, Any] | None:
    """What the environment was made from (`requirements`, `python`); None if there is no finished one."""
    try:
        found = json.loads((environments_folder() / name / RECORD).read_text())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def require(name: str) -> Path:
    """The environment's folder. Raises EnvironmentMissing if it has to be made first."""
    entry(name)
    made = record(name)
    if made is None:
        raise EnvironmentMissing(f"the environment {name} is not there; make it with: {create_command(name)}")
    if made.get("requirements") != requirements_digest(name):
        raise EnvironmentMissing(
            f"the environment {name} was made with other versions than this xspec pins; make it anew with: "
            f"{create_command(name)}"
        )
    return environments_folder() / name


def interpreter(folder: Path) -> Path:
    """The interpreter of an environment's folder."""
    return folder / "bin" / "python"


def variables(name: str, folder: Path | None = None) -> dict[str, str]:
    """What is set for every process of the environment; `folder` while it is not yet in its place."""
    where = str(folder or environments_folder() / name)
    return {key: value.replace("{folder}", where) for key, value in entry(name).variables.items()}


def installed_version(folder: Path, package: str) -> str | None:
    """The version of a package in an environment, from what its installer wrote down; None if it isn't there."""
    sites = [str(path) for path in folder.glob("lib/python*/site-packages")]
    found = importlib.metadata.distributions(name=package, path=sites)
    return next((distribution.version for distribution in found), None)
