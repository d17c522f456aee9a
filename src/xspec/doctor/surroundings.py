"""What surrounds the process: key variables, `.env`, and everything that would reroute another client."""

import os
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path

from xspec.doctor.findings import Finding, note, ok, problem
from xspec.errors import UserError
from xspec.route.keys import fingerprint, owner_of, read_key
from xspec.route.shared_pace import runtime_folder
from xspec.spec.models import ExperimentSpec

PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
AUTHORITIES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


def keys(
    spec: ExperimentSpec, environ: Mapping[str, str], dotenv: Mapping[str, str | None]
) -> Iterator[Finding]:
    """Each key variable of the route: there, whole, and where it comes from. Values are never shown."""
    for name in sorted({m.api_key_env for m in spec.route.members if m.kind == "openai"}):
        try:
            key = read_key(name, environ)
        except UserError as error:
            what, _, do = str(error).partition("; ")
            missing = name not in environ
            yield problem("key", what, f"export {name}=… or put a line {name}=… into .env" if missing else do)
            continue
        source = "the environment"
        if dotenv.get(name) is not None:
            source = ".env" if dotenv[name] == key else "the environment, which wins over .env"
        owner = owner_of(key)
        looks = f", looks like a key of {owner}" if owner else ""
        finding = f"{name} is set, from {source} ({fingerprint(key)}{looks})"
        if source.endswith("over .env"):
            yield note("key", finding, f"unset {name} if the one in .env is meant", matters=True)
        else:
            yield ok("key", finding)


def dotenv_values(path: Path) -> dict[str, str | None]:
    """What `.env` would set; nothing if there is none. That it is readable was seen at the start of the command."""
    if not path.is_file():
        return {}
    from dotenv import dotenv_values as read

    return dict(read(path, interpolate=True))


def reroutes(spec: ExperimentSpec, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Variables that send other clients elsewhere. xspec reads none of them."""
    keys_used = {m.api_key_env for m in spec.route.members if m.kind == "openai"}
    present = {name.upper(): name for name, value in environ.items() if value}
    proxies = [present[name] for name in PROXIES if name in present]
    if proxies:
        using = f"; it uses {spec.route.proxy}" if spec.route.proxy else "; it connects directly"
        yield note(
            "proxy",
            f"{_list(proxies)} set: xspec ignores {_it(proxies)}{using}",
            None if spec.route.proxy else "if the provider is only reached through a proxy: route.proxy=URL",
        )
    openai = sorted(name for name in environ if name.startswith("OPENAI_") and name not in keys_used)
    if openai:
        yield note("environment", f"{_list(openai)} set: xspec ignores {_it(openai)}")
    authorities = [name for name in AUTHORITIES if environ.get(name)]
    if authorities:
        yield note(
            "environment",
            f"{_list(authorities)} set: xspec ignores {_it(authorities)}",
            "if the provider's certificate needs it: route.ca_file=FILE",
        )
    if not (proxies or openai or authorities):
        yield ok("environment", "no proxy, certificate or OPENAI_* variable that would reroute other clients")


def pace() -> Iterator[Finding]:
    """Whether processes can share a provider's limit."""
    folder = runtime_folder()
    if folder is None or (folder.exists() and not os.access(folder, os.W_OK)):
        yield note(
            "pacing",
            "no private runtime folder: several processes with one key cannot share its limit",
            "set XDG_RUNTIME_DIR or TMPDIR to a folder that only you can write",
        )


def resolves(host: str) -> bool:
    """Whether the host name is known."""
    try:
        socket.getaddrinfo(host, None)
    except OSError:
        return False
    return True


def _list(names: list[str]) -> str:
    return ", ".join(names) + (" is" if len(names) == 1 else " are")


def _it(names: list[str]) -> str:
    return "it" if len(names) == 1 else "them"
