"""The MLflow UI: comes up on loopback, shows the gap in a browser, and leaves no process."""

import json
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import psutil
import pytest

from xspec.cli import ui
from xspec.errors import UserError
from xspec.tracking.project import project_all
from xspec.tracking.ui import free_port

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def begin_ui(store: Path) -> tuple["subprocess.Popen[str]", str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "xspec", "ui", "--store", str(store), "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


def end(process: "subprocess.Popen[str]", sign: int) -> None:
    children = psutil.Process(process.pid).children(recursive=True)
    assert children
    process.send_signal(sign)
    process.communicate(timeout=30)
    _, alive = psutil.wait_procs(children, timeout=15)
    assert alive == []


def shows(address: str, profile: Path, *texts: str) -> None:
    """The page shows all of it. On a busy machine its scripts may not be through when it is read: then again."""
    missing: list[str] = list(texts)
    for _ in range(4):
        shown = page(address, profile)
        missing = [text for text in texts if text not in shown]
        if not missing:
            return
    raise AssertionError(f"{address} does not show {missing}")


def page(address: str, profile: Path) -> str:
    """The page's text after its scripts have run."""
    assert CHROMIUM is not None
    command = [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    command += [f"--user-data-dir={profile}", "--window-size=1900,1600", "--virtual-time-budget=30000"]
    done = subprocess.run([*command, "--dump-dom", address], capture_output=True, text=True, timeout=120)
    return done.stdout


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium: apt-get install chromium")
def test_a_browser_shows_the_gap_of_each_arm(maker: Any, database: Any, tmp_path: Path) -> None:
    maker.execution(["+-", "++"])
    maker.execution(["++", "++"], arm="guided", sampling={"seed": 2})
    project_all(maker.store)
    process, address = begin_ui(maker.store.path)
    try:
        terms = ("gap_pp", "mean_at_2_pct", "pass_hat_2_pct", "The gap and its terms")
        shows(address, tmp_path / "profile", *terms, "guided xs-", "baseline xs-")
        (run,) = database.rows(
            "SELECT run_uuid FROM runs WHERE name LIKE 'baseline xs-%' AND lifecycle_stage = 'active'"
        )[0]
        base = address.split("#")[0]
        one = f"{base}#/experiments/1/runs/{run}"
        shows(one, tmp_path / "profile", "Mean@2 75.0, Pass^2 50.0, gap 25.0 pp")
        shows(f"{one}/artifacts/config_snapshot.json", tmp_path / "profile", "You are an agent.")
    finally:
        end(process, signal.SIGINT)
    assert process.returncode == 0


def test_the_ui_answers_on_loopback_and_goes_with_its_parent(maker: Any, database: Any) -> None:
    maker.execution()
    project_all(maker.store)
    process, address = begin_ui(maker.store.path)
    assert address.startswith("http://127.0.0.1:")
    base = address.split("#")[0]
    body = json.dumps({"experiment_ids": ["1"], "filter": "metrics.gap_pp > 0"}).encode()
    request = urllib.request.Request(
        f"{base}api/2.0/mlflow/runs/search", body, {"Content-Type": "application/json"}
    )
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=20) as answer:
        assert len(json.load(answer)["runs"]) == 1
    end(process, signal.SIGKILL)


def test_a_taken_port_is_said(maker: Any) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(UserError, match=r"port \d+ is taken; give another with --port"):
            free_port(taken.getsockname()[1])


def test_an_empty_store_has_no_ui(store: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert ui.main(["--store", str(store.path)]) == 0
    assert "Nothing stored yet" in capsys.readouterr().out


def test_a_port_out_of_range_is_refused(store: Any) -> None:
    with pytest.raises(UserError, match="give a number from 0 to 65535"):
        ui.main(["--store", str(store.path), "--port", str(2**16)])
