"""Where a trial's simulated model is found: the path carries the place of every request."""

import hashlib
import re
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from xspec.spec.canonical import ID_DIGITS, canonical_bytes

COMPLETIONS = "/chat/completions"
_TRIAL = re.compile(r"/t/([^/]+)/([^/]+)/(\d{1,9})/([^/]+)/v1/chat/completions")


class TrialAddress(NamedTuple):
    """The trial a request belongs to. `execution` is the nonce of every draw made for it."""

    execution: str
    member: str
    run: int
    task: str


def member_key(member: Mapping[str, Any]) -> str:
    """16 hex digits of the SHA-256 of the member's plain `model`, `behaviour` and `faults`.

    Equal settings have equal keys, whatever the member is called. Raises KeyError if one of the three lacks.
    """
    settings = {name: member[name] for name in ("model", "behaviour", "faults")}
    return hashlib.sha256(canonical_bytes(settings)).hexdigest()[:ID_DIGITS]


def trial_path(trial: TrialAddress) -> str:
    """The base path of one trial, `/t/<execution>/<member key>/<run>/<task>/v1`, quoted."""
    execution, task = quote(trial.execution, safe=""), quote(trial.task, safe="")
    return f"/t/{execution}/{quote(trial.member, safe='')}/{trial.run}/{task}/v1"


def parse_trial(path: str) -> TrialAddress | None:
    """The trial of a request path (without query); None if it is not a trial's completions path."""
    match = _TRIAL.fullmatch(path)
    if match is None:
        return None
    execution, member, run, task = match.groups()
    return TrialAddress(unquote(execution), unquote(member), int(run), unquote(task))
