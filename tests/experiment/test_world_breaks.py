"""A world that breaks: the agent's doing is a fail, the machine's is invalid and tried once more."""

from pathlib import Path
from typing import Any


def test_agent_that_kills_every_world_has_failed(lab: Any, kit: Any) -> None:
    server = kit.ChatServer(lambda n, request: (200, kit.completion(None, ("die", {}))))
    with server.serving():
        finished = lab.here("k=1", "benchmark.limit=1", *kit.LAB, *server.overrides, LAB_KEY=kit.KEY)
    assert finished.code == 0
    assert set(kit.outcomes(lab.only()).values()) == {("fail", "killed_world")}
    assert len(server.requests) == 1, "the replay asks no model"


def test_world_that_died_once_is_run_again(lab: Any, kit: Any, tmp_path: Path) -> None:
    once = {"once": str(tmp_path / "died")}

    def answer(number: int, request: dict[str, Any]) -> tuple[int, Any]:
        if request["messages"][-1]["role"] == "user":
            return 200, kit.completion(None, ("die", once), ("add", {"amount": 3}))
        return 200, kit.completion("done")

    server = kit.ChatServer(answer)
    with server.serving():
        finished = lab.here("k=1", "benchmark.limit=1", *kit.LAB, *server.overrides, LAB_KEY=kit.KEY)
    assert finished.code == 0
    progress = lab.only().progress()
    (trial,) = progress.trials.values()
    assert (trial.outcome, trial.take, progress.superseded) == ("pass", 1, 1)


def test_tool_that_hangs_each_time_has_failed(lab: Any, kit: Any) -> None:
    server = kit.ChatServer(lambda n, request: (200, kit.completion(None, ("sleep", {"seconds": 3600}))))
    with server.serving():
        finished = lab.here(
            *("k=1", "benchmark.limit=1", "agent.tool_timeout_s=0.2", *kit.LAB, *server.overrides),
            LAB_KEY=kit.KEY,
        )
    assert finished.code == 0
    assert set(kit.outcomes(lab.only()).values()) == {("fail", "tool_timeout")}
