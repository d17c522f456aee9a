"""`GET /v1/models`: the models that the spec freezes. Nothing is asked of the provider."""

from typing import Any

import orjson

from xspec.gateway.answer import Answer
from xspec.gateway.endpoint import Frozen, Incoming


async def models_list(frozen: Frozen, incoming: Incoming, answer: Answer) -> None:
    """One entry a model."""
    listed = [_entry(model) for model in dict.fromkeys(frozen.models)]
    await answer.whole(200, orjson.dumps({"object": "list", "data": listed}))


def _entry(model: str) -> dict[str, Any]:
    return {"id": model, "object": "model", "created": 0, "owned_by": "xspec"}
