"""Routers: providers that choose an upstream for each call, and what ties them to one."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

OPENROUTER = "openrouter.ai"
PIN = "{provider: {only: [SLUG], allow_fallbacks: false, require_parameters: true}}"


def is_openrouter(base_url: str) -> bool:
    """Whether the base URL is OpenRouter's."""
    host = (urlsplit(base_url).hostname or "").rstrip(".").lower()
    return host == OPENROUTER or host.endswith("." + OPENROUTER)


def why_not_pinned(base_url: str, extra_body: Mapping[str, Any] | None) -> str | None:
    """Why a member does not name one fixed upstream, and what to write; None if it does, or is no known router.

    `order` alone is no pin: it falls back. Without `require_parameters` an upstream drops what it does not know,
    such as the seed.
    """
    if not is_openrouter(base_url):
        return None
    provider = (extra_body or {}).get("provider")
    provider = provider if isinstance(provider, Mapping) else {}
    only = provider.get("only")
    one = isinstance(only, list | tuple) and len(only) == 1
    if one and provider.get("allow_fallbacks") is False and provider.get("require_parameters") is True:
        return None
    return (
        "OpenRouter chooses an upstream for each call, so this is no fixed route; name one upstream with "
        f"provider.extra_body='{PIN}', or float on purpose (route=floating)"
    )
