"""The parent's side of the simulated model's process."""

from pathlib import Path

from xspec.servers.process import ServerProcess


class RehearsalServer(ServerProcess):
    """The simulated model in its own process, for as long as the context lasts.

        async with RehearsalServer(log) as server:
            base_url = await server.start({"members": …, "tasks": …})      # "http://127.0.0.1:49152"

    Raises RouteStopped with the cause `rehearsal_died`.
    """

    def __init__(self, log: Path, *, ready_timeout_s: float = 30.0, end_timeout_s: float = 5.0) -> None:
        super().__init__(
            "xspec.rehearsal.server",
            log,
            called="the rehearsal server",
            cause="rehearsal_died",
            arguments=("--config", "-"),
            ready_timeout_s=ready_timeout_s,
            end_timeout_s=end_timeout_s,
        )
