"""The provider's model list: is the model there, and if not, what is it perhaps called?"""

import difflib
from collections.abc import Sequence

import orjson

from xspec.doctor.probe import Raw


def models_of(reply: Raw) -> list[str]:
    """The ids in a model list; none if the reply is no list."""
    if not 200 <= reply.status < 300:
        return []
    try:
        data = orjson.loads(reply.body)
    except orjson.JSONDecodeError:
        return []
    rows = data.get("data") if isinstance(data, dict) else data
    if not isinstance(rows, list):
        return []
    return [row["id"][:200] for row in rows if isinstance(row, dict) and isinstance(row.get("id"), str)]


def near_names(model: str, known: Sequence[str], count: int = 3) -> list[str]:
    """The names most like `model`: dated ids of an alias first, then the usual slips of the pen."""
    wanted = model.rpartition("/")[2].lower()
    holding = sorted(name for name in known if wanted in name.lower() and name != model)
    alike = difflib.get_close_matches(model, known, n=count, cutoff=0.5)
    return list(dict.fromkeys([*holding, *(name for name in alike if name != model)]))[:count]
