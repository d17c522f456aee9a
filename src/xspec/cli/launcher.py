"""Which of Hydra's launchers a command line chooses."""

from collections.abc import Sequence

LAUNCHER = "hydra/launcher="


def launcher_of(overrides: Sequence[str]) -> str:
    """The launcher that the overrides choose; `basic` if none."""
    chosen = [o.partition("=")[2] for o in overrides if o.startswith(LAUNCHER)]
    return chosen[-1] if chosen else "basic"


def without_launcher(overrides: Sequence[str]) -> list[str]:
    """The overrides that say what is run, not how."""
    return [o for o in overrides if not o.lstrip("+").startswith((LAUNCHER, "hydra.launcher."))]
