"""Builds the own root and plays its tasks in every way that must fail or pass:
`<appworld's interpreter> play_root.py FOLDER`.

Prints one JSON object: task -> way -> whether the verdict was a pass.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any


def ways_to_play(solution: dict[str, Any], thorough: bool) -> dict[str, list[str]]:
    """Name -> the code blocks of one trial. Not `thorough`: only what differs between tasks of a scenario."""
    blocks = [call["code"] for call in solution["calls"]]
    give_up, detour, commit = solution["give_up"]["code"], solution["detour"]["code"], solution["commit"]
    ways = {"give up at commit": [*blocks[:commit], give_up]}
    if thorough:
        ways["nothing"] = []
        ways["solution with detours"] = [code for block in blocks for code in (detour, block)]
        ways["give up after commit"] = [*blocks[: commit + 1], give_up]
    else:
        ways["solution"] = blocks
    return ways


def play(task: str, blocks: list[str], name: str) -> bool:
    """Plays one trial. An error in the agent's code is an error in the own solution, so it is raised."""
    from appworld import AppWorld

    with AppWorld(task_id=task, experiment_name=name, raise_on_extra_parameters=True) as world:
        for code in blocks:
            output = world.execute(code)
            if output.startswith("Execution failed"):
                raise RuntimeError(f"{task}, {name}: {output}")
        if world.task_completed() != bool(blocks):
            raise RuntimeError(
                f"{task}, {name}: the world doesn't know whether the agent declared completion"
            )
        return bool(world.evaluate().success)


def main(root: Path) -> None:
    from build_root import build

    build(root)
    verdicts: dict[str, dict[str, bool]] = {}
    for path in sorted(root.glob("data/tasks/*/ground_truth/xspec_solution.json")):
        task = path.parts[-3]
        ways = ways_to_play(json.loads(path.read_text()), thorough=task.endswith("_1"))
        verdicts[task] = {way: play(task, blocks, way.replace(" ", "-")) for way, blocks in ways.items()}
    print(json.dumps(verdicts))


if __name__ == "__main__":
    os.environ["APPWORLD_ROOT"] = sys.argv[1]
    main(Path(sys.argv[1]))
