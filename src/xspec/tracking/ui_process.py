"""`python -m xspec.tracking.ui_process STORE PORT`: the MLflow server, which ends with the process that started it."""

import os
import signal
import sys
import threading
from pathlib import Path

from xspec.tracking.database import artifact_path, database_uri


def main(store: str, port: str) -> None:
    """Serves until standard input closes. The server's own processes are in this one's group and go with it."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    from mlflow.cli import cli

    path = Path(store)
    cli(
        [
            "server",
            *("--backend-store-uri", database_uri(path)),
            *("--artifacts-destination", str(artifact_path(path))),
            *("--host", "127.0.0.1", "--port", port, "--workers", "1"),
        ]
    )


def _end_with_parent() -> None:
    while os.read(0, 4096):
        pass
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main(*sys.argv[1:])
