"""A count with its noun."""


def counted(n: float, noun: str) -> str:
    """`1 task`, `2 tasks`, `2 replies`, `1,200 calls`, `0.5 points`. The noun is given in the singular."""
    if n == 1:
        return f"1 {noun}"
    ends_in_ies = noun.endswith("y") and noun[-2:-1] not in tuple("aeiou")
    number = f"{n:g}" if isinstance(n, float) else f"{n:,}"
    return f"{number} {noun[:-1]}ies" if ends_in_ies else f"{number} {noun}s"
