"""`GET /v1/models` and `GET /v1/models/<name>`: the models that the spec freezes. Nothing is asked of the provider."""

from typing import Any

import orjson

from xspec.gateway.answer import Answer
from xspec.gateway.endpoint import Frozen, Incoming
from xspec.gateway.refusals import error_body

PATH = "/v1/models"


async def models_list(frozen: Frozen, incoming: Incoming, answer: Answer) -> None:
    """One entry a model."""
    listed = [_entry(model) for model in dict.fromkeys(frozen.models)]
    await answer.whole(200, orjson.dumps({"object": "list", "data": listed}))


async def model_named(frozen: Frozen, incoming: Incoming, answer: Answer) -> None:
    """The model whose name ends the path. It may have slashes."""
    name = incoming.attributed.path.removeprefix(f"{PATH}/")
    if name in frozen.models:
        await answer.whole(200, orjson.dumps(_entry(name)))
        return
    said = f"the spec freezes no model {name[:100]!r}; it has {', '.join(dict.fromkeys(frozen.models))}"
    await answer.whole(404, error_body(said, "model_not_found", "model"), final=True)


def _entry(model: str) -> dict[str, Any]:
    return {"id": model, "object": "model", "created": 0, "owned_by": "xspec"}
