"""The guard of the one request that is no chat completion: the model list, `GET …/models` beside the chat path."""

import httpx2

from xspec.errors import SpecDrift
from xspec.route.address import CHAT, Address
from xspec.route.guard import check_address, check_headers


def list_address(chat: Address) -> Address:
    """Where the provider of a chat address lists its models."""
    return chat._replace(target=chat.target.removesuffix(CHAT) + "/models")


class ListingGuard:
    """Lets a bodiless GET to `address` with the frozen key pass, and nothing else."""

    def __init__(self, address: Address, fingerprint: str) -> None:
        self._address = address
        self._fingerprint = fingerprint

    def check(self, request: httpx2.Request, body: bytes) -> None:
        """Raises SpecDrift naming the first thing about the request that is not so."""
        check_address(request, self._address, "GET")
        check_headers(request, self._address, None, self._fingerprint)
        if body:
            raise SpecDrift("body", "none", f"{len(body)} bytes")
