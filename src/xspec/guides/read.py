"""Reading a guide from a file that a user names.

A new form is one file with `recognises` and `read`, and one line here.
"""

import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from xspec.errors import SpecError
from xspec.guides import altk_index, altk_playbook, guide_file, plain_text
from xspec.guides.guide import Guide
from xspec.spec.user_file import read_user_file

MAX_BYTES = 20_000_000
"""A guide file with the uncertainty of every step of 168 trajectories has 1 MB."""
MAX_TEXT_BYTES = 200_000

_JSON = re.compile(r"\s*(\{|\[\s*[\[{\"\]])")
"""How JSON begins. A line of text may begin with a bracket too, as a link does."""


class Reader(NamedTuple):
    """`recognises` looks at parsed JSON; `read` gets it with the path that errors name."""

    form: str
    recognises: Callable[[Any], bool]
    read: Callable[[Any, str], Guide]


READERS = (
    Reader('a guide file {"xspec_guide": 1, …}', guide_file.recognises, guide_file.read),
    Reader('an ALTK playbook {"entries": […]}', altk_playbook.recognises, altk_playbook.read),
    Reader(
        'an ALTK retrieval index {"core": […], "singletons": […]}', altk_index.recognises, altk_index.read
    ),
)


def read_guide(path: str) -> Guide:
    """The guide in the file. Raises UserError that names the file and what is wrong with it."""
    data = read_user_file(path, MAX_BYTES, "guide file")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SpecError(f"guide file {path} is not UTF-8 (byte {error.start})") from None
    if "\0" in text:
        raise SpecError(f"guide file {path} holds a NUL character; it should be a text file")
    if _JSON.match(text):
        guide = _from_json(text, path)
    elif len(data) > MAX_TEXT_BYTES:
        raise SpecError(f"guide file {path} has more than {MAX_TEXT_BYTES} bytes; that cannot be meant")
    else:
        guide = plain_text.read(text, path)
    if not guide.rules:
        raise SpecError(f"guide file {path} holds no rule; for no guide use guide=none")
    return guide


def _from_json(text: str, path: str) -> Guide:
    try:
        data = json.loads(text, object_pairs_hook=_once)
        json.dumps(data, ensure_ascii=False).encode()
    except KeyError as error:
        raise SpecError(f"guide file {path} gives the key {error} twice in one object") from None
    except UnicodeEncodeError:
        raise SpecError(
            f"guide file {path} holds half a character, like \\ud800, which is no text; write the whole one"
        ) from None
    except (ValueError, RecursionError) as error:
        raise SpecError(f"guide file {path} begins like JSON and is none ({error})") from None
    for reader in READERS:
        if reader.recognises(data):
            return reader.read(data, path)
    forms = "; ".join(reader.form for reader in READERS)
    raise SpecError(
        f"guide file {path} is JSON of no known form; known: {forms}; or text with one rule a line"
    )


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object. Raises KeyError for a key given twice, of which one would silently not count."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise KeyError(key)
        found[key] = value
    return found
