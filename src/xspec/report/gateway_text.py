"""What came through a gateway, on a terminal."""

from textwrap import wrap

from rich.console import Console
from rich.text import Text

from xspec.report.gateway import GatewayFigures, gateway_lines
from xspec.report.sentences import SIMULATED


def print_gateway(found: GatewayFigures, console: Console) -> None:
    """A sentence each, wrapped to the width, without markup."""
    first, *rest = gateway_lines(found)
    lines = [first, *(SIMULATED for _ in range(found.simulated)), *(f"- {line}" for line in rest)]
    for line in lines:
        indent = "  " if line.startswith("- ") else ""
        shown = line.encode("ascii", "replace").decode() if console.options.ascii_only else line
        for row in wrap(shown, console.width, subsequent_indent=indent, break_on_hyphens=False):
            console.print(Text(row), soft_wrap=True)
    console.print()
