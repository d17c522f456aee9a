"""A count with its noun."""


def counted(n: int, noun: str) -> str:
    """`1 task`, `2 tasks`, `2 replies`, `1,200 calls`. The noun is given in the singular; its last word bends."""
    if n == 1:
        return f"1 {noun}"
    ends_in_ies = noun.endswith("y") and noun[-2:-1] not in tuple("aeiou")
    return f"{n:,} {noun[:-1]}ies" if ends_in_ies else f"{n:,} {noun}s"
