"""The MLflow UI of a store: a server on loopback that ends with the process that asked for it."""

import contextlib
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from xspec.errors import UserError, XspecError
from xspec.tracking.database import EXPERIMENT, database_path
from xspec.tracking.project import tracking_environment
from xspec.tracking.view_state import SHARED_VIEW

HOST = "127.0.0.1"
DEFAULT_PORT = 5000
READY_TIMEOUT_S = 120.0


class UiFailed(XspecError):
    """The MLflow UI did not come up."""


@contextlib.contextmanager
def running_ui(store: Path, port: int | None) -> Iterator[tuple[str, "subprocess.Popen[bytes]"]]:
    """Starts the UI and waits until it answers; gives the address of the experiment's page, and the process.

    `port` None takes 5000, or a free one if that is taken; 0 takes a free one. The server and all it started are
    gone when the context ends, and also when this process is killed: then its standard input closes.
    """
    port = free_port(port)
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "xspec.tracking.ui_process", str(store), str(port)],
            env=tracking_environment(),
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            _wait_ready(process, port, log.fileno())
            yield f"http://{HOST}:{port}/#/experiments/{_experiment_id(store)}/runs?{SHARED_VIEW}", process
        finally:
            end_group(process)


def free_port(port: int | None) -> int:
    """The port to serve on. Raises UserError if the one that was named is taken."""
    for candidate in (DEFAULT_PORT, 0) if port is None else (port,):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, candidate))
            except OSError:
                continue
            number: int = probe.getsockname()[1]
            return number
    raise UserError(f"port {port} is taken; give another with --port, or --port 0 for a free one")


def end_group(process: "subprocess.Popen[bytes]") -> None:
    """Ends the server with all its children, and waits for it."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, sign)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(5)
    if process.stdin is not None:
        process.stdin.close()


def _wait_ready(process: "subprocess.Popen[bytes]", port: int, log: int) -> None:
    until = time.monotonic() + READY_TIMEOUT_S
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    while time.monotonic() < until:
        if process.poll() is not None:
            said = os.pread(log, 100_000, 0).decode(errors="replace").strip().splitlines() or ["no output"]
            raise UiFailed(f"the MLflow UI ended with exit code {process.returncode} ({said[-1][:300]})")
        try:
            with opener.open(f"http://{HOST}:{port}/health", timeout=2) as answer:
                if answer.status == 200:
                    return
        except (OSError, urllib.error.URLError):
            pass
        time.sleep(0.1)
    raise UiFailed(f"the MLflow UI did not answer on port {port} within {READY_TIMEOUT_S:.0f} s")


def _experiment_id(store: Path) -> int:
    with contextlib.closing(sqlite3.connect(database_path(store), timeout=20)) as connection:
        row = connection.execute(
            "SELECT experiment_id FROM experiments WHERE name = ?", (EXPERIMENT,)
        ).fetchone()
    return int(row[0])
