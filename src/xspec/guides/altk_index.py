"""ALTK-Evolve's retrieval index: `{"core": […], "singletons": [{rule, source_task, source_instruction}, …]}`.

Core rules recurred over many tasks and go to all of them; each singleton comes from one task.
"""

from typing import Any

from xspec.errors import SpecError
from xspec.guides.guide import Guide
from xspec.guides.rule import Rule


def recognises(data: Any) -> bool:
    return isinstance(data, dict) and ("core" in data or "singletons" in data)


def read(data: Any, path: str) -> Guide:
    """Raises SpecError that names the entry."""
    core, singletons = data.get("core", []), data.get("singletons", [])
    if not isinstance(core, list) or not isinstance(singletons, list):
        raise SpecError(f"retrieval index {path}: core and singletons should be lists")
    rules = [
        Rule(_text(entry, "rule", f"core[{i}]", path), core=True, source_tasks=_source(entry))
        for i, entry in enumerate(core)
    ]
    for i, entry in enumerate(singletons):
        text = _text(entry, "rule", f"singletons[{i}]", path)
        given = entry.get("source_instruction") if isinstance(entry, dict) else None
        instruction = given if isinstance(given, str) and given.strip() else None
        rules.append(Rule(text, source_tasks=_source(entry), source_instruction=instruction))
    return Guide(tuple(rules), "ALTK retrieval index")


def _text(entry: Any, field: str, place: str, path: str) -> str:
    text = entry.get(field) if isinstance(entry, dict) else entry
    if not isinstance(text, str) or not text.strip():
        raise SpecError(
            f"retrieval index {path}: {place} should be a rule, or an object with one in {field!r}"
        )
    return text


def _source(entry: Any) -> tuple[str, ...]:
    task = entry.get("source_task") if isinstance(entry, dict) else None
    return (task,) if isinstance(task, str) and task else ()
