"""What a new user stumbles over: each is one line and leaves nothing behind."""

import shutil
from pathlib import Path

import pytest

from xspec.__main__ import main
from xspec.cli.parser import VerbParser
from xspec.errors import UserError
from xspec.spec.compose import conf_dir

CHOICES = "benchmark=choices"
"""The benchmark that is asked quickest."""
SMALL = [CHOICES, "benchmark.tasks=[plain.0]", "k=1"]


@pytest.fixture
def conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the configuration, to be spoilt."""
    shutil.copytree(conf_dir(), tmp_path / "conf")
    monkeypatch.setenv("XSPEC_CONF", str(tmp_path / "conf"))
    return tmp_path / "conf"


def refused(capsys: pytest.CaptureFixture[str], arguments: list[str], said: str) -> None:
    assert main(arguments) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1, told
    assert told.startswith("xspec: ")
    assert said in told


@pytest.mark.parametrize(
    ("line", "said"), [("k: [", "line"), ("k: 3", "duplicate key"), ("\t- x: y", "line")]
)
@pytest.mark.parametrize("verb", [[], ["show"]])
def test_broken_yaml(
    conf: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], verb: list[str], line: str, said: str
) -> None:
    with (conf / "config.yaml").open("a") as file:
        file.write(f"\n{line}\n")
    refused(capsys, [*verb, *SMALL, f"store={tmp_path / 's'}"], said)
    assert not (tmp_path / "s").exists()


def test_configuration_that_is_no_text(
    conf: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (conf / "sampling" / "default.yaml").write_bytes(b"temperature: \xff\n")
    refused(capsys, [*SMALL, f"store={tmp_path / 's'}"], "UTF-8")


@pytest.mark.parametrize(
    "arguments",
    [
        ["benchmark.split=nope"],
        ["benchmark.tasks=[nope]"],
        ["agent.max_steps=0"],
        ["+arm=guided", "guide=none"],
        ["guide=file", "guide.file=/nope"],
        [
            "provider=openai_compatible",
            "provider.base_url=nope",
            "provider.model=m",
            "provider.api_key_env=K",
        ],
    ],
)
def test_refused_input_leaves_no_store(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert main([CHOICES, "k=1", *arguments, f"store={tmp_path / 's'}"]) == 2
    assert not (tmp_path / "s").exists()


def test_refused_sweep_leaves_no_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL[:-1], "k=1,0", f"store={tmp_path / 's'}", "-m"]) == 2
    assert not (tmp_path / "s").exists()
    capsys.readouterr()
    refused(capsys, [*SMALL, f"store={tmp_path / 'a'},{tmp_path / 'b'}", "-m"], "one store")
    assert not (tmp_path / "a").exists()
    assert not (tmp_path / "b").exists()


def test_commas_without_a_sweep(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refused(capsys, ["+arm=baseline,guided", f"store={tmp_path / 's'}"], "add -m")


@pytest.mark.parametrize("verb", [["report"], ["query", "SELECT 1"]])
def test_a_store_that_is_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str], verb: list[str]) -> None:
    (tmp_path / "file").write_text("")
    refused(capsys, [*verb, f"store={tmp_path / 'file'}"], "not a folder")


def test_a_dotenv_line_that_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text("A=1\ngarbage line\n")
    refused(capsys, ["report"], ".env line 2")


@pytest.mark.parametrize("text", ['{"rules": ["a"]}', '["a", "b"]', "- a\0b\n"])
def test_a_guide_that_is_no_list_of_rules(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    (tmp_path / "guide").write_text(text)
    refused(
        capsys,
        [*SMALL, "guide=file", f"guide.file={tmp_path / 'guide'}", f"store={tmp_path / 's'}"],
        "guide file",
    )


def test_an_excluded_task_that_is_named_is_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["benchmark.tasks=[banking.user_task_5]", "k=1", f"store={tmp_path / 's'}"]) == 0
    assert "measures nothing" in capsys.readouterr().err


def test_all_invalid_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SOME_KEY", "some-key-of-no-value")
    dead = [
        "provider.base_url=http://127.0.0.1:9/v1",
        "provider.model=m-2026-01-01",
        "provider.api_key_env=SOME_KEY",
    ]
    arguments = [
        *SMALL,
        "provider=openai_compatible",
        *dead,
        "route.retry.max_attempts=1",
        f"store={tmp_path / 's'}",
    ]
    assert main(arguments) == 1
    told = capsys.readouterr().err
    assert "1 of 1 trial invalid, most by route:connection" in told
    assert "127.0.0.1:9" in told


ID = "xs-0123456789abcdef"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["gateway", ID, "sampling.temperature=1"],
            f"{ID} is the id of a stored spec, which takes no overrides",
        ),
        (["show", ID, "k=3"], "takes no overrides"),
        (["doctor", ID], "takes no overrides"),
        (["reproduce", ID, "k=3"], "it takes no overrides (k=3)"),
        (["show", "benchmark", "k=3"], "'benchmark' is no override, which looks like k=3"),
    ],
)
def test_an_id_takes_no_overrides(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    refused(capsys, [*words, f"store={tmp_path / 's'}"], said)
    assert not (tmp_path / "s").exists()


def test_options_and_overrides_stand_in_any_order() -> None:
    parser = VerbParser()
    parser.add_argument("--store")
    parser.add_argument("what", nargs="*")
    verbs = VerbParser().add_subparsers(dest="verb")
    check = verbs.add_parser("lint")
    check.add_argument("--store")
    check.add_argument("file")
    check.add_argument("what", nargs="*")
    for words in (
        ["a=1", "--store", "S", "b=2"],
        ["--store", "S", "a=1", "b=2"],
        ["a=1", "b=2", "--store", "S"],
    ):
        for found in (parser.parse_args(words), check.parse_args(["F", *words])):
            assert (found.what, found.store) == (["a=1", "b=2"], "S")
    with pytest.raises(UserError, match="unrecognized arguments: --other"):
        parser.parse_args(["a=1", "--other"])
