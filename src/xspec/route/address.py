"""Addresses: what a member's base URL and path mean, and which of them are refused before a call."""

import re
from importlib.util import find_spec
from typing import NamedTuple, NoReturn
from urllib.parse import SplitResult, urlsplit

from xspec.errors import UserError

DEFAULT_PORTS = {"http": 80, "https": 443}
CHAT = "/chat/completions"

_NETLOC = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*\])(?::[0-9]*)?")


class Address(NamedTuple):
    """Where one request goes. `target` is the path with its query, as on the request line."""

    scheme: str
    host: str
    port: int
    target: str

    @property
    def authority(self) -> str:
        """Host and port as in a `Host` header: a default port is left out, an IPv6 host is bracketed."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.authority}"

    @property
    def url(self) -> str:
        return self.origin + self.target


def address_of(base_url: str, path: str) -> Address:
    """The address of `path` under `base_url`. Raises UserError as `check_base_url` does."""
    parts = _checked(base_url)
    host = parts.hostname or ""
    port = parts.port or DEFAULT_PORTS[parts.scheme]
    return Address(parts.scheme, host, port, parts.path.rstrip("/") + path)


def check_base_url(base_url: str, path: str | None = None) -> None:
    """Refuse a base URL (with the path that goes under it, if given) that cannot be meant.

    Raises UserError that says what is wrong and what would be right. User info is never echoed.
    """
    parts = _checked(base_url)
    if path is None:
        return
    base = parts.path.rstrip("/")
    whole = base + path
    if "//" in whole:
        _refuse(base_url, f"joined with the path {path} has an empty segment", "a path with single slashes")
    if "/v1/v1" in whole:
        _refuse(base_url, f"and the path {path} have /v1 twice", f"the path {CHAT} under this base URL")
    if base and path.startswith(base + "/"):
        _refuse(base_url, f"has its path {base} again at the start of the path {path}", "each part once")


def default_path(base_url: str) -> str:
    """`/chat/completions` under a base that ends in `/v1`, else `/v1/chat/completions`."""
    return CHAT if urlsplit(base_url).path.rstrip("/").endswith("/v1") else "/v1" + CHAT


def other_path(target: str) -> str:
    """The other path in use for the same endpoint: with `/v1` if it is missing, without it if it is there."""
    if target.endswith("/v1" + CHAT):
        return target.removesuffix("/v1" + CHAT) + CHAT
    return target.removesuffix(CHAT) + "/v1" + CHAT


def _checked(base_url: str) -> SplitResult:
    example = "a URL like https://host/v1"
    # First of all, because every other message shows the URL.
    if "@" in base_url.partition("?")[0]:
        raise UserError(
            "a base URL has user info (…@) in it; name the variable that holds the key in api_key_env instead"
        )
    if base_url != base_url.strip() or any(c.isspace() or not c.isprintable() for c in base_url):
        _refuse(base_url, "has white space in it", example)
    if "?" in base_url:
        # Not shown: a query string is where some gateways want the key.
        raise UserError(
            f"the base URL {base_url.partition('?')[0]}?… has a query string, which would end up inside the "
            "path; leave it out and put the key's variable in api_key_env"
        )
    if "#" in base_url:
        _refuse(base_url, "has a fragment (#…)", "the URL without it")
    try:
        parts = urlsplit(base_url)
        port = parts.port
    except ValueError:
        _refuse(base_url, "has a port or a host that cannot be read", "a port from 1 to 65535")
    if parts.scheme not in DEFAULT_PORTS:
        _refuse(base_url, "does not begin with http:// or https://", example)
    if not parts.hostname:
        _refuse(base_url, "has no host", example)
    if not parts.hostname.isascii():
        _refuse(base_url, "has a host outside ASCII", "its punycode form (xn--…)")
    if not _NETLOC.fullmatch(parts.netloc):
        _refuse(base_url, "has a host with characters that no host name has", example)
    if port == 0:
        _refuse(base_url, "has port 0", "a port from 1 to 65535")
    if not parts.path.isascii() or "%" in parts.path:
        _refuse(base_url, "has a path that needs percent-encoding", "a path of plain ASCII letters")
    if re.search(r"/chat/completions/?$", parts.path):
        right = base_url.rstrip("/").removesuffix(CHAT)
        _refuse(base_url, f"ends in {CHAT}, which is the path", f"base URL {right} and path {CHAT}")
    if "/v1/v1" in parts.path:
        _refuse(base_url, "has /v1 twice", base_url.replace("/v1/v1", "/v1"))
    if "//" in parts.path or "/./" in parts.path + "/" or "/../" in parts.path + "/":
        _refuse(base_url, "has an empty or dotted segment in its path", example)
    return parts


def _refuse(base_url: str, wrong: str, right: str) -> NoReturn:
    raise UserError(f"the base URL {base_url!r} {wrong}; right would be {right}")


def check_proxy(proxy: str | None) -> None:
    """Raise UserError unless the proxy, if any, can be used. A spec is stored, so it may hold no password."""
    if proxy is None:
        return
    if "@" in proxy:
        raise UserError(
            "the proxy of the route has user info (…@) in it, which would be stored with the spec"
        )
    scheme = urlsplit(proxy).scheme
    if scheme not in ("http", "https", "socks5", "socks5h"):
        raise UserError(f"the proxy {proxy!r} of the route is no http://, https:// or socks5:// URL")
    if scheme.startswith("socks") and find_spec("socksio") is None:
        raise UserError("a SOCKS proxy needs the package socksio: install it, or name an http:// proxy")
