"""From `conf/` and overrides to plain data, with Hydra and OmegaConf, which stay in this file and in xspec.cli."""

import hashlib
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from xspec.errors import SpecError

CONFIG_NAME = "config"
_ENV_INTERPOLATION = re.compile(r"\$\{\s*(?:oc\.env|env)\s*:")


def conf_dir() -> Path:
    """The configuration folder: XSPEC_CONF, else the package's own (a wheel), else the checkout's."""
    named = os.environ.get("XSPEC_CONF")
    package = Path(__file__).resolve().parents[1]
    candidates = [Path(named).absolute()] if named else [package / "conf", package.parents[1] / "conf"]
    for folder in candidates:
        if (folder / f"{CONFIG_NAME}.yaml").is_file():
            return folder
    raise SpecError(
        f"no {CONFIG_NAME}.yaml in {' or '.join(map(str, candidates))}; set XSPEC_CONF to the folder that has it"
    )


def conf_digest(folder: Path) -> str:
    """Digest of every YAML file below the folder: a sweep refuses a job whose configuration changed meanwhile."""
    state = hashlib.sha256()
    for path in sorted(folder.rglob("*.yaml")):
        state.update(f"{path.relative_to(folder).as_posix()}\0".encode())
        state.update(hashlib.sha256(path.read_bytes()).digest())
    return state.hexdigest()


def compose(overrides: Sequence[str]) -> dict[str, Any]:
    """Composes one configuration outside a Hydra run (for `show`, `diff`, …)."""
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir

    from xspec.spec.store import Store

    for word in overrides:
        if Store.looks_like_id(word):
            raise SpecError(
                f"{word} is the id of a stored spec, which takes no overrides; give the id alone, where this command "
                "takes one, or overrides alone"
            )
    try:
        with initialize_config_dir(str(conf_dir()), version_base=None):
            return plain_of(hydra_compose(CONFIG_NAME, overrides=list(overrides)))
    except composing_errors() as error:
        raise SpecError(one_line(error)) from None


def composing_errors() -> tuple[type[Exception], ...]:
    """What Hydra, OmegaConf and the YAML reader raise for a configuration that cannot be composed."""
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException
    from yaml import YAMLError  # type: ignore[import-untyped]

    return HydraException, OmegaConfBaseException, YAMLError, UnicodeDecodeError


def plain_of(config: Any) -> dict[str, Any]:
    """Plain data of a composed DictConfig, resolved once; after this nobody touches a DictConfig."""
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    raw = OmegaConf.to_container(config, resolve=False)
    _refuse_environment(raw, "")
    try:
        plain = OmegaConf.to_container(config, resolve=True, throw_on_missing=True)
    except OmegaConfBaseException as error:
        raise SpecError(one_line(error)) from None
    assert isinstance(plain, dict)
    return {str(key): value for key, value in plain.items() if key != "hydra"}


def one_line(error: BaseException) -> str:
    """What a Hydra or OmegaConf error says, on one line, with a hint where the usual cause is known."""
    override = getattr(error, "override", None)
    if isinstance(override, str):
        return _unreadable(override)
    mark = getattr(error, "problem_mark", None)
    if mark is not None:
        return f"{mark.name} line {mark.line + 1}: {getattr(error, 'problem', None) or 'no valid YAML'}"
    if isinstance(error, UnicodeDecodeError):
        return f"a file below {conf_dir()} is not UTF-8 text"
    text = " ".join(str(error).split())
    if text.startswith("Ambiguous value for argument"):
        return "a value with commas is a sweep: add -m (or, for one list, write [a,b])"
    if text.startswith("Missing mandatory value"):
        name = getattr(error, "full_key", None) or text.rpartition(" ")[2]
        return f"{name} must be given: {name}=…"
    if text.startswith("Interpolation key"):
        name = getattr(error, "full_key", None)
        wanted = re.search(r"'([^']+)'", text)
        return f"{name or 'a value'} refers to {wanted[1] if wanted else 'a key'}, which there is not"
    unknown = re.search(r"Could not override '([^']+)'", text)
    if unknown and unknown[1] in ("arm", "published"):
        return f"{unknown[1]} is added with a plus: +{unknown[1]}=NAME"
    if unknown:
        return f"unknown key {unknown[1]}; `python -m xspec show` prints the keys there are"
    option = re.search(
        r"Could not find '([^']+)' Available options in '([^']+)': (.*?) Config search path", text
    )
    if option:
        names = [name for name in option[3].split() if not name.startswith("_")]
        return (
            f"no such choice {'='.join(option[1].rsplit('/', 1))}; {option[2]} is one of {', '.join(names)}"
        )
    return re.sub(r" See https?://\S+ for details| full_key: .*$", "", text)


def _unreadable(override: str) -> str:
    """What to do about an override that Hydra's grammar refuses. Its value is not shown: it may be anything."""
    if "=" not in override:
        return f"{override!r} is no override, which looks like k=3"
    name, _, value = override.partition("=")
    if "://" in value and "?" in value:
        return f"{name}: a base URL has no query string; leave out everything from the question mark on"
    return (
        f"the value of {name} cannot be read; one with special characters needs quotes inside quotes, "
        f"like '{name}=\"a: b\"'"
    )


def _refuse_environment(value: Any, where: str) -> None:
    if isinstance(value, dict):
        for key, item in value.items():
            if key != "hydra":
                _refuse_environment(item, f"{where}.{key}" if where else str(key))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            _refuse_environment(item, f"{where}[{i}]")
    elif isinstance(value, str) and _ENV_INTERPOLATION.search(value):
        raise SpecError(
            f"{where} reads the environment; write the value itself, or name a key variable in api_key_env"
        )
