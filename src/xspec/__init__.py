"""xspec: compile an agent experiment into a frozen spec, guard every model call, rerun, compare."""

__version__ = "0.1.0"
