"""ALTK-Evolve's playbook: `{"entries": [{"r": rule, "n": support, "e": "s"|"f"|"b"}, …]}`. It names no source tasks."""

from typing import Any

from xspec.errors import SpecError
from xspec.guides.guide import Guide
from xspec.guides.rule import Evidence, Rule

_EVIDENCE: dict[str, Evidence] = {"s": "success", "f": "failure", "b": "both"}


def recognises(data: Any) -> bool:
    return isinstance(data, dict) and "entries" in data


def read(data: Any, path: str) -> Guide:
    """Raises SpecError that names the entry."""
    entries = data["entries"]
    if not isinstance(entries, list):
        raise SpecError(f"playbook {path}: entries should be a list")
    return Guide(tuple(_rule(entry, i, path) for i, entry in enumerate(entries)), "ALTK playbook")


def _rule(entry: Any, place: int, path: str) -> Rule:
    text = entry.get("r") if isinstance(entry, dict) else None
    if not isinstance(text, str) or not text.strip():
        raise SpecError(
            f'playbook {path}: entries[{place}] should be {{"r": rule, "n": support, "e": "s|f|b"}}'
        )
    support, evidence = entry.get("n"), entry.get("e")
    if support is not None and (type(support) is not int or support < 1):
        raise SpecError(f"playbook {path}: entries[{place}].n should be a count, 1 or more")
    if evidence is not None and evidence not in _EVIDENCE:
        raise SpecError(f"playbook {path}: entries[{place}].e should be s, f or b")
    return Rule(text, support=support, evidence=None if evidence is None else _EVIDENCE[evidence])
