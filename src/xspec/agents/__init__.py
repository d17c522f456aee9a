"""Agent kinds: one file each, and one line here."""

from types import ModuleType

from xspec.agents import code_react, json_choice, tool_loop

AGENTS: dict[str, ModuleType] = {
    "tool_loop": tool_loop,
    "json_choice": json_choice,
    "code_react": code_react,
}
"""kind → the module with its VERSION, `offer` and `play`."""
