"""Agent kinds: one file each, and one line here."""

from types import ModuleType

from xspec.agents import json_choice, tool_loop

AGENTS: dict[str, ModuleType] = {"tool_loop": tool_loop, "json_choice": json_choice}
"""kind → the module with its VERSION, `offer` and `play`."""
