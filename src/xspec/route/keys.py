"""API keys: read from a named variable, never echoed, and known elsewhere by fingerprint only."""

import hashlib
import os
import re
import string
from collections.abc import Iterable, Mapping
from functools import lru_cache

from xspec.errors import UserError

NO_KEY = "members-started-by-xspec-need-no-key"
"""The bearer sent to members that xspec starts itself. It opens nothing."""

_UNESCAPED = frozenset(string.printable) - frozenset('"\\/')
_QUOTES = "\"'`\u201c\u201d\u2018\u2019"
_KEY_LIKE = re.compile(r"(?i)\b(?:bearer\s+)?(?:sk|pk|gsk|xai|hf|key)[-_][A-Za-z0-9*._-]{8,}|bearer\s+\S+")
_OWNERS = {
    "sk-or-": "OpenRouter",
    "sk-ant-": "Anthropic",
    "sk-proj-": "OpenAI",
    "gsk_": "Groq",
    "xai-": "xAI",
    "hf_": "Hugging Face",
    "AIza": "Google",
}


def read_key(env_name: str, environ: Mapping[str, str] = os.environ) -> str:
    """The key that the variable holds.

    Raises UserError that names the variable and what is wrong with its value, and never shows any of it: keys
    reach a variable by copy and paste, and what comes along (quotes, a newline, a word) makes a 401 much
    later.
    """
    key = environ.get(env_name)
    if key is None:
        raise UserError(f"the variable {env_name} is not set; it has to hold the API key")
    wrong = _what_is_wrong(key)
    if wrong is not None:
        raise UserError(f"the key in the variable {env_name} {wrong}")
    return key


def fingerprint(key: str) -> str:
    """`kf-` and 8 hex digits: enough to notice a swapped key, too little to test guesses against."""
    return "kf-" + hashlib.sha256(b"xspec key fingerprint 1\0" + key.encode()).hexdigest()[:8]


def owner_of(key: str) -> str | None:
    """The provider whose keys begin like this one, or None if the beginning says nothing."""
    return next((owner for prefix, owner in _OWNERS.items() if key.startswith(prefix)), None)


def scrub(text: str, keys: Iterable[str], limit: int = 300) -> str:
    """Text from outside made fit for a message: one line, short, without keys and what looks like one."""
    for key in keys:
        text = text.replace(key, "[key]")
    text = _KEY_LIKE.sub("[key]", text)
    text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def without_key(data: bytes, key: str) -> bytes:
    """A reply without the key, which some providers echo, also if it stands there in JSON's escapes."""
    secret = key.encode()
    if secret in data:
        data = data.replace(secret, b"[key]")
    if b"\\u00" in data or (b"\\" in data and not _UNESCAPED.issuperset(key)):
        data = _spellings(key).sub(b"[key]", data)
    return data


@lru_cache
def _spellings(key: str) -> re.Pattern[bytes]:
    """The key in JSON, where each character may stand as it is or escaped."""
    ways = (rf"\\?{re.escape(letter)}|\\u00(?i:{ord(letter):02x})" for letter in key)
    return re.compile("".join(f"(?:{way})" for way in ways).encode())


def _what_is_wrong(key: str) -> str | None:
    if not key.strip():
        return "is empty; put the API key there"
    if key != key.strip():
        return "has white space or a newline around it; store the bare key"
    if key[0] in _QUOTES or key[-1] in _QUOTES:
        return "has quotes around it; store the bare key"
    if key.lower().startswith("bearer "):
        return 'begins with the word "Bearer"; store the bare key'
    if not key.isascii() or not key.isprintable():
        return "has characters that are not printable ASCII (often pasted along unseen); copy the key again"
    if " " in key:
        return "has white space inside; copy the key again"
    return None
