"""The parent's side of the local model's process."""

from pathlib import Path
from typing import Any

from xspec.servers.process import ServerProcess
from xspec.spec.members import LocalMember

ENVIRON = {
    # Threads that wait actively for one another cost a factor of ten on a machine that has other work.
    "OMP_WAIT_POLICY": "passive"
}


class LocalServer(ServerProcess):
    """The local model in its own process, for as long as the context lasts.

    Raises RouteStopped with the cause `local_died`.
    """

    def __init__(self, log: Path, *, ready_timeout_s: float = 120.0, end_timeout_s: float = 5.0) -> None:
        super().__init__(
            "xspec.local.server",
            log,
            called="the local model's server",
            cause="local_died",
            environ=ENVIRON,
            ready_timeout_s=ready_timeout_s,
            end_timeout_s=end_timeout_s,
        )


def server_settings(member: LocalMember) -> dict[str, Any]:
    """What the server is started with. Members with equal settings share one."""
    return member.model_dump(
        include={"model", "gguf_sha256", "n_ctx", "n_parallel", "threads", "cache_prompt"}
    )
