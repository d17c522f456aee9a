"""Bad input: one clear line, exit code 2, nothing sent, nothing half-written."""

import json
import socket
from pathlib import Path
from typing import Any

import pytest

OPENAI = (
    *("provider=openai_compatible", "provider.model=m-2026-01-01", "provider.api_key_env=LAB_KEY"),
    "provider.base_url=http://127.0.0.1:9/v1",
)

OVERRIDES: dict[str, tuple[list[str], str]] = {
    "unknown key": (["benchmarks.limit=3"], "unknown key benchmarks"),
    "unknown nested key": (["sampling.temprature=0"], "unknown key sampling.temprature"),
    "added key": (["+sampling.bogus=1"], "unknown key sampling.bogus"),
    "added root key": (["+bogus=1"], "unknown key bogus"),
    "unknown provider": (["provider=opnai"], "provider is one of"),
    "unknown arm": (["+arm=guidedd"], "arm is one of baseline"),
    "arm without plus": (["arm=guided"], "+arm=NAME"),
    "unknown benchmark kind": (["benchmark.kind=agentdoj"], "known: agentdojo"),
    "unknown benchmark version": (["benchmark.version=v9"], "version"),
    "unknown option": (["--bogus"], "unknown option --bogus"),
    "unknown verb": (["reprot"], "did you mean report?"),
    "no verb": (["frobnicate"], "neither a verb nor an override"),
    "k of zero": (["k=0"], "k: input should be greater than or equal to 1 (got 0)"),
    "k of a half": (["k=2.5"], "k: "),
    "k of true": (["k=true"], "k: "),
    "k of text": (["k=five"], "k: "),
    "k of nothing": (["k=null"], "k: "),
    "k without end": (["k=1000000"], "k: "),
    "no workers": (["workers=0"], "workers: "),
    "negative timeout": (["route.timeout_s=-1"], "route.timeout_s: "),
    "infinite timeout": (["route.timeout_s=inf"], "route.timeout_s"),
    "not a number": (["sampling.temperature=nan"], "sampling.temperature"),
    "temperature as text": (["sampling.temperature=hot"], "sampling.temperature: "),
    "temperature out of range": (["sampling.temperature=3"], "sampling.temperature: "),
    "seed of a half": (["sampling.seed=4.2"], "sampling.seed: "),
    "limit of zero": (["benchmark.limit=0"], "benchmark.limit: "),
    "share beyond one": (["max_invalid_share=2"], "max_invalid_share: "),
    "faults beyond one": (["provider.faults.reset=1"], "add up to more than 1"),
    "unknown task": (["benchmark.tasks=[lab.task_999]"], "unknown task 'lab.task_999'; did you mean"),
    "task twice": (["benchmark.tasks=[lab.task_1,lab.task_1]"], "twice"),
    "no task": (["benchmark.tasks=[]"], "benchmark.tasks: "),
    "every task excluded": (
        ["benchmark.exclude=[" + ",".join(f"{{task: lab.task_{n}, reason: x}}" for n in range(100)) + "]"],
        "benchmark.tasks",
    ),
    "unknown tool": (["agent.tools=[subtract]"], "no toolset of lab has a tool 'subtract'"),
    "label that lies about the guide": (["+arm=guided", "guide=none"], "arm guided stands for guide=rules"),
    "label that lies about the route": (["+arm=floating", "route=fixed"], "arm floating stands for route"),
    "floating with one member": (["route=floating", *OPENAI], "provider.pool=[{name: second"),
    "two members of a name": (["route=floating", "provider.pool.0.name=a"], "two members share a name"),
    "guide file that is not there": (["guide=file", "guide.file=/nowhere.md"], "guide file /nowhere.md"),
    "guide file not named": (["guide=file"], "guide.file must be given"),
    "empty rule": (["guide=checklist", "guide.rules=['']"], "guide.rules"),
    "broken override": (["k=["], "the value of k cannot be read"),
    "broken interpolation": (["provider.model=${nowhere}"], "nowhere"),
    "mandatory value": (["provider=openai_compatible"], "must be given"),
    "query in the base URL": ([*OPENAI, "provider.base_url=https://x.test/v1?utm_source=a"], "query string"),
    "no scheme": ([*OPENAI, "provider.base_url=x.test/v1"], "http"),
    "path in the base URL": ([*OPENAI, "provider.base_url=https://x.test/v1/chat/completions"], "path"),
    "doubled v1": ([*OPENAI, "provider.base_url=https://x.test/v1/v1"], "/v1 twice"),
    "v1 in base and path": ([*OPENAI, "provider.path=/v1/chat/completions"], "/v1"),
    "path without slash": ([*OPENAI, "provider.path=chat"], "provider.path"),
    "extra_body that the spec fixes": ([*OPENAI, "provider.extra_body={temperature: 1}"], "temperature"),
    "ca file that is none": (["route.ca_file=/dev/null"], "no regular file"),
    "empty store": (["store="], "store"),
    "store in a file": (["store=/dev/null/x"], "choose another with store=PATH"),
}


@pytest.mark.parametrize(("overrides", "said"), OVERRIDES.values(), ids=list(OVERRIDES))
def test_wrong_override(lab: Any, kit: Any, overrides: list[str], said: str) -> None:
    base = ["k=1", "benchmark.limit=1", *kit.LAB]
    given = [item for item in base if item.partition("=")[0] not in {o.partition("=")[0] for o in overrides}]
    last = [f"store={lab.store_path}"] if not any(o.startswith("store=") for o in overrides) else []
    _told(lab, _main(lab, [*given, *overrides, *last], LAB_KEY=kit.KEY), said)


def test_every_arm_of_a_sweep_is_wrong_in_one_way_and_says_so_once(lab: Any, kit: Any) -> None:
    _told(lab, lab.here("+arm=baseline,guided", "-m", "k=0", *kit.LAB), "k: ")
    assert not (lab.store_path / "sweeps").exists()


def test_one_wrong_arm_of_a_sweep_keeps_the_others_from_running(lab: Any, kit: Any) -> None:
    """Arms compile before any of them is executed."""
    _told(lab, lab.here("k=1,0", "-m", "benchmark.limit=1", *kit.LAB), "k: ")


KEYS = {
    "missing": ({}, "the variable LAB_KEY is not set"),
    "empty": ({"LAB_KEY": ""}, "is empty"),
    "blank": ({"LAB_KEY": "  "}, "is empty"),
    "quoted": ({"LAB_KEY": '"plain-words-of-a-key"'}, "has quotes around it"),
    "padded": ({"LAB_KEY": "plain-words-of-a-key\n"}, "white space or a newline around it"),
    "with its word": ({"LAB_KEY": "Bearer plain-words-of-a-key"}, 'begins with the word "Bearer"'),
}


@pytest.mark.parametrize(("variables", "said"), KEYS.values(), ids=list(KEYS))
def test_wrong_key_variable(lab: Any, kit: Any, variables: dict[str, str], said: str) -> None:
    refused = lab.here("k=1", "benchmark.limit=1", *kit.LAB, *OPENAI, **variables)
    _told(lab, refused, said)
    assert "plain-words" not in refused.err


VERBS: dict[str, tuple[list[str], str]] = {
    "unknown id": (["show", "xs-0123456789abcdef"], "no spec 'xs-0123456789abcdef'"),
    "no id": (["show", "sx-12"], "neither a spec id"),
    "reproduce of an unknown id": (["reproduce", "xs-01"], "no spec"),
    "reproduce of nothing": (["reproduce"], "required"),
    "no workers": (["reproduce", "xs-01", "--workers", "0"], "--workers 0"),
    "unknown option": (["report", "--bogus"], "--bogus"),
    "no number": (["report", "--last", "x"], "--last"),
    "number below one": (["report", "--last", "0"], "--last 0"),
    "unknown format": (["report", "--format", "yaml"], "--format"),
    "report of an unknown spec": (["report", "--spec", "xs-77"], "no spec"),
    "diff with one side": (["diff", "xs-01"], "required"),
}


@pytest.mark.parametrize(("words", "said"), VERBS.values(), ids=list(VERBS))
def test_wrong_word_to_a_verb(lab: Any, words: list[str], said: str) -> None:
    _told(lab, lab.here(*words), said)


def test_ambiguous_id(lab: Any, kit: Any) -> None:
    for k in (1, 2):
        lab.spec_id(f"k={k}", "benchmark.limit=1", *kit.LAB)
    for verb in ("show", "reproduce"):
        _told(lab, lab.here(verb, "xs-"), "fits 2 specs")


def test_store_of_a_newer_layout(lab: Any, kit: Any) -> None:
    (lab.store_path / "store.json").write_text(json.dumps({"layout": 99}))
    for words in (["k=1", *kit.LAB], ["report"], ["show", "xs-01"], ["reproduce", "xs-01"]):
        refused = lab.here(*words)
        assert refused.code == 2, words
        assert "update xspec" in refused.err
        assert refused.err.count("\n") == 1


def test_dotenv_that_is_no_text(lab: Any, kit: Any) -> None:
    (lab.cwd / ".env").write_bytes(b"\xff\xfe\x00")
    _told(lab, lab.here("k=1", *kit.LAB), "cannot be read as UTF-8 text")


def test_conf_that_is_not_there(lab: Any, kit: Any, tmp_path: Path) -> None:
    _told(
        lab, lab.here("k=1", *kit.LAB, XSPEC_CONF=str(tmp_path)), "set XSPEC_CONF to the folder that has it"
    )


def test_busy_port_of_the_simulated_model(lab: Any) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        refused = _main(lab, ["rehearsal", "--port", str(port)])
    assert refused.code == 2
    assert f"port {port} on 127.0.0.1 is in use" in refused.err
    assert refused.err.count("\n") == 1


def _main(lab: Any, arguments: list[str], **variables: str) -> Any:
    """Runs exactly these arguments."""
    lab.complete = list
    try:
        return lab.here(*arguments, **variables)
    finally:
        del lab.complete


def _told(lab: Any, refused: Any, said: str) -> None:
    assert refused.code == 2, refused
    assert refused.err.startswith("xspec: ")
    assert said in refused.err
    assert refused.err.count("\n") == 1
    assert len(refused.err) < 500
    assert "Traceback" not in refused.err
    assert refused.out == ""
    assert lab.executions() == []
    assert not (lab.cwd / "mlruns").exists()
    assert not (lab.cwd / "outputs").exists()
    assert not (lab.cwd / "multirun").exists()
