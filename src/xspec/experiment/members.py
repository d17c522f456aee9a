"""From a provider's configuration to the members of its route, the first of which serves a fixed one."""

import re
from typing import Any

from xspec.errors import SpecError, UserError
from xspec.route.address import check_base_url, default_path
from xspec.spec.config import (
    LocalProvider,
    OpenAIPoolMember,
    OpenAIProvider,
    RehearsalPoolMember,
    RehearsalProvider,
)


def members_of(provider: OpenAIProvider | RehearsalProvider | LocalProvider) -> list[dict[str, Any]]:
    """Plain members, in the provider's order. Raises SpecError for addresses that cannot be meant."""
    if isinstance(provider, RehearsalProvider):
        return _rehearsal_members(provider)
    if isinstance(provider, LocalProvider):
        return [provider.model_dump(exclude={"workers", "timeout_s", "max_wait_s", "backoff_s"})]
    return _openai_members(provider)


def _openai_members(provider: OpenAIProvider) -> list[dict[str, Any]]:
    shared = provider.model_dump(exclude={"kind", "name", "pool", "workers"})
    members = []
    items: tuple[OpenAIProvider | OpenAIPoolMember, ...] = (provider, *provider.pool)
    for item in items:
        own = item.model_dump(exclude={"kind", "pool", "workers"}, exclude_none=True)
        member = {"kind": "openai", **shared, **own}
        if item is not provider and "model" in own:
            member["expect_served"] = own.get("expect_served")
        where = "provider" if item is provider else f"provider.pool member {item.name}"
        try:
            check_base_url(member["base_url"])
        except UserError as error:
            raise SpecError(f"{where}.base_url: {error}") from None
        member["base_url"] = member["base_url"].rstrip("/")
        member["path"] = _checked_path(member["path"], where) or default_path(member["base_url"])
        if member["base_url"].endswith("/v1") and member["path"].startswith("/v1/"):
            raise SpecError(
                f"{where}: base_url ends in /v1 and path begins with /v1: the address would hold it twice"
            )
        members.append(member)
    return members


def _checked_path(path: str | None, where: str) -> str | None:
    if path is not None and not re.fullmatch(r"(/[A-Za-z0-9._~-]+)+", path):
        raise SpecError(f"{where}.path: {path!r} is not a plain path like /v1/chat/completions")
    return path


def _rehearsal_members(provider: RehearsalProvider) -> list[dict[str, Any]]:
    base = {"kind": "rehearsal", "model": provider.model, "behaviour": provider.behaviour.model_dump()}
    items: tuple[RehearsalProvider | RehearsalPoolMember, ...] = (provider, *provider.pool)
    return [{**base, "name": item.name, "faults": item.faults.model_dump()} for item in items]
