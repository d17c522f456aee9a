"""Environments are made whole or not at all, once, with the pinned versions; workers that need them find them."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from xspec.__main__ import main
from xspec.benchmarks import BENCHMARKS, Launch, environment_making, environments, package_fingerprint
from xspec.benchmarks.environments import Environment
from xspec.benchmarks.pool import WorkerPool
from xspec.errors import EnvironmentFailed, EnvironmentMissing

PINNED = "packaging==26.4\n"
TINY = Environment(
    "for tests",
    "packaging",
    ((3, 11), (3, 99)),
    "import packaging",
    prepare=(("-c", "open('{folder}/prepared', 'w').close()"),),
    variables={"TINY_HOME": "{folder}/home"},
)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for environments, with `tiny` as the only one that is known."""
    pins = tmp_path / "pins"
    pins.mkdir()
    (pins / "tiny.txt").write_text(PINNED)
    monkeypatch.setattr(environments, "_REQUIREMENTS", pins)
    monkeypatch.setattr(environments, "ENVIRONMENTS", {"tiny": TINY})
    monkeypatch.setenv(environments.FOLDER_VARIABLE, str(tmp_path / "made"))
    return tmp_path / "made"


def use(monkeypatch: pytest.MonkeyPatch, *prepare: tuple[str, ...], check: str = TINY.check) -> None:
    entry = Environment(TINY.what, TINY.package, TINY.python, check, prepare, TINY.variables)
    monkeypatch.setattr(environments, "ENVIRONMENTS", {"tiny": entry})


def left_in(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir() if not path.name.endswith(".lock"))


def test_it_is_made_once_and_removed(root: Path) -> None:
    assert environment_making.create("tiny") is True
    folder = environments.require("tiny")
    made = (folder / environments.RECORD).stat().st_mtime_ns
    assert (folder / "prepared").exists()
    assert environments.installed_version(folder, "packaging") == "26.4"
    assert environment_making.check("tiny") == []
    assert environment_making.create("tiny") is False
    assert (folder / environments.RECORD).stat().st_mtime_ns == made
    assert left_in(root) == ["tiny"]
    assert environment_making.remove("tiny") is True
    assert left_in(root) == []
    assert environment_making.remove("tiny") is False


@pytest.mark.parametrize(
    ("prepare", "check", "said"),
    [
        ((("-c", "raise ValueError('no licence')"),), "", "ValueError: no licence"),
        ((("-c", "raise SystemExit(4)"),), "", "exit code 4"),
        ((), "import packaging_that_is_not_there", "No module named 'packaging_that_is_not_there'"),
    ],
)
def test_what_fails_leaves_nothing(
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    prepare: tuple[tuple[str, ...], ...],
    check: str,
    said: str,
) -> None:
    use(monkeypatch, *prepare, check=check)
    with pytest.raises(EnvironmentFailed, match=said) as failed:
        environment_making.create("tiny")
    assert "\n" not in str(failed.value)
    assert left_in(root) == []
    with pytest.raises(EnvironmentMissing):
        environments.require("tiny")


def test_versions_that_cannot_be_had_are_one_line(root: Path) -> None:
    environments.requirements_file("tiny").write_text("packaging==0.0.0.1\n")
    with pytest.raises(EnvironmentFailed, match=r"uv pip install failed: .*packaging") as failed:
        environment_making.create("tiny")
    assert "\n" not in str(failed.value)
    assert left_in(root) == []


def test_a_killed_making_leaves_no_environment_and_the_next_one_clears_up(
    root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ready = tmp_path / "ready"
    os.mkfifo(ready)
    program = f"""
        from pathlib import Path
        from xspec.benchmarks import environment_making, environments
        environments._REQUIREMENTS = Path({str(environments._REQUIREMENTS)!r})
        block = "import signal; open({str(ready)!r}, 'w').close(); signal.pause()"
        tiny = environments.Environment("", "packaging", ((3, 11), (3, 99)), "", prepare=(("-c", block),))
        environments.ENVIRONMENTS = {{"tiny": tiny}}
        environment_making.create("tiny")
    """
    making = subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)], start_new_session=True)
    with ready.open():  # until everything is installed and the last step runs
        pass
    os.killpg(making.pid, signal.SIGKILL)
    making.wait()
    assert len(left_in(root)) == 1
    with pytest.raises(EnvironmentMissing, match=r"python -m xspec env create tiny"):
        environments.require("tiny")
    assert environment_making.create("tiny") is True
    assert left_in(root) == ["tiny"]


def test_two_makings_at_once_wait_for_each_other(root: Path) -> None:
    made: list[bool] = []
    both = [threading.Thread(target=lambda: made.append(environment_making.create("tiny"))) for _ in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    assert sorted(made) == [False, True]
    assert left_in(root) == ["tiny"]


def test_other_pins_want_it_made_anew(root: Path) -> None:
    environment_making.create("tiny")
    environments.requirements_file("tiny").write_text("packaging==26.3\n")
    with pytest.raises(EnvironmentMissing, match="other versions than this xspec pins"):
        environments.require("tiny")
    assert environment_making.create("tiny") is True
    assert environments.installed_version(environments.require("tiny"), "packaging") == "26.3"
    assert left_in(root) == ["tiny"]


def test_making_it_gets_no_key(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "not-for-programs")
    monkeypatch.setenv("UV_INDEX_STRATEGY", "first-index")
    use(monkeypatch, ("-c", "import os; assert 'SOME_API_KEY' not in os.environ"))
    assert "UV_INDEX_STRATEGY" in environment_making._variables_for_uv(os.environ)
    assert "SOME_API_KEY" not in environment_making._variables_for_uv(os.environ)
    assert environment_making.create("tiny") is True


def test_a_worker_runs_in_its_environment(
    root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    module = Path(__file__).with_name("tiny_benchmark.py")
    launch = Launch(module, ("packaging",), environment="tiny", variables=("TINY_DATA",))
    monkeypatch.setitem(BENCHMARKS, "mine", launch)
    monkeypatch.setenv("TINY_DATA", "here")
    pool = WorkerPool("mine", "1", "all", {}, members=1, log=None)

    async def seen() -> str:
        async with pool, pool.world("tiny.0", 0, open_timeout_s=5) as world:
            action = {"name": "environ", "arguments": {}}
            return str((await world.act(action, 5))["content"])

    for attempt in (lambda: asyncio.run(seen()), lambda: package_fingerprint("mine")):
        with pytest.raises(EnvironmentMissing, match=r"make it with: python -m xspec env create tiny"):
            attempt()
    environment_making.create("tiny")
    variables = asyncio.run(seen()).splitlines()
    assert f"TINY_HOME={root}/tiny/home" in variables
    assert "TINY_DATA=here" in variables
    first = package_fingerprint("mine")
    monkeypatch.setenv("TINY_DATA", "there")
    assert package_fingerprint("mine") != first


def test_the_verb(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def said(*arguments: str, code: int) -> str:
        assert main(["env", *arguments]) == code
        return "".join(capsys.readouterr())

    assert "not made; python -m xspec env create tiny" in said("list", code=0)
    assert said("check", "tiny", code=2).count("\n") == 1
    assert said("create", "tinny", code=2) == "xspec: there is no environment 'tinny'; known: tiny\n"
    assert "tiny is made: packaging 26.4" in said("create", "tiny", code=0)
    assert "tiny is there already" in said("create", "tiny", code=0)
    assert "packaging 26.4, Python 3." in said("list", code=0)
    assert "it runs" in said("check", "tiny", code=0)
    (information,) = (root / "tiny").glob("lib/python*/site-packages/packaging-*.dist-info")
    information.rename(information.with_name("packaging-1.0.dist-info"))
    (information.with_name("packaging-1.0.dist-info") / "METADATA").write_text(
        "Name: packaging\nVersion: 1.0\n"
    )
    assert "packaging is 1.0 and should be 26.4" in said("check", "tiny", code=3)
    assert "tiny is removed" in said("remove", "tiny", code=0)


@pytest.mark.parametrize("name", environments.ENVIRONMENTS)
def test_pins_are_whole_and_name_no_registry(name: str) -> None:
    lines = environments.requirements_file(name).read_text().splitlines()
    assert all("==" in line and "://" not in line and not line.startswith("-") for line in lines)
    assert any(line.startswith(environments.ENVIRONMENTS[name].package + "==") for line in lines)
