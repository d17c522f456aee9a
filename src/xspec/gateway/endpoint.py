"""What every endpoint has at hand, and what one is."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from xspec.gateway.answer import Answer
from xspec.gateway.attribution import Attributed
from xspec.gateway.conversations import Conversations
from xspec.gateway.ledger import Ledger
from xspec.route.client import Route
from xspec.route.foreign import Enforce


@dataclass(frozen=True, slots=True)
class Incoming:
    """One HTTP request that may come in. Header names are lower-case."""

    method: str
    attributed: Attributed
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Frozen:
    """What a gateway execution works with. `models` are those of the route's members, in their order."""

    route: Route
    enforce: Enforce
    models: tuple[str, ...]
    conversations: Conversations
    ledger: Ledger


Endpoint = Callable[[Frozen, Incoming, Answer], Awaitable[None]]
