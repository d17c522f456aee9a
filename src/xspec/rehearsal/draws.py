"""Chance without state: every draw is a hash of what it decides.

So a resumed execution draws what it would have drawn had it never stopped, and a new execution, whose id is
another nonce, draws independently.
"""

from hashlib import blake2b


def uniform(*parts: str | int) -> float:
    """A number in [0, 1), the same for the same parts in any process on any platform."""
    return (int.from_bytes(_digest(parts)[:8], "big") >> 11) * 2.0**-53


def token(*parts: str | int) -> str:
    """24 hex digits, for ids that must be the same for the same parts."""
    return _digest(parts)[:12].hex()


def pick(count: int, *parts: str | int) -> int:
    """An index in 0…count-1, each as likely. `count` is at least 1."""
    return int(uniform(*parts) * count)


def _digest(parts: tuple[str | int, ...]) -> bytes:
    # Lengths stand before the parts, so that ("a", "bc") and ("ab", "c") are different draws.
    text = "".join(f"{len(part)}:{part}" if isinstance(part, str) else f"{part};" for part in parts)
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
