"""Agent kinds: one file each, and one line here."""

from types import ModuleType

from xspec.agents import tool_loop

AGENTS: dict[str, ModuleType] = {"tool_loop": tool_loop}
"""kind → the module with its VERSION and `play`."""
