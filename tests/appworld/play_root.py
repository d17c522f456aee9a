"""Builds the own root and plays its tasks in every way that must fail or pass:
`<appworld's interpreter> play_root.py FOLDER`.

Prints one JSON object: task -> way -> whether the verdict was a pass.
"""

import gc
import json
import os
import sys
import traceback
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


def play_aside(task: str, blocks: list[str], name: str) -> bool:
    """The same in a fork, which finds loaded what the first world loaded: those of one process slow each other."""
    sys.stdout.flush()
    fork = os.fork()
    if fork == 0:
        try:
            os._exit(0 if play(task, blocks, name) else 1)
        except BaseException:
            traceback.print_exc()
            os._exit(2)
    code = os.waitstatus_to_exitcode(os.waitpid(fork, 0)[1])
    if code not in (0, 1):
        raise RuntimeError(f"{task}, {name}: exit code {code}")
    return code == 0


def main(root: Path) -> None:
    from build_root import build

    build(root)
    trials: list[tuple[str, list[str], str]] = []
    for path in sorted(root.glob("data/tasks/*/ground_truth/xspec_solution.json")):
        task = path.parts[-3]
        ways = ways_to_play(json.loads(path.read_text()), thorough=task.endswith("_1"))
        trials += [(task, blocks, way.replace(" ", "-")) for way, blocks in ways.items()]
    passed = [play(*trials[0])]
    passed += [play_aside(*trial) for trial in trials[1:]]
    verdicts: dict[str, dict[str, bool]] = {}
    for (task, _, name), good in zip(trials, passed, strict=True):
        verdicts.setdefault(task, {})[name.replace("-", " ")] = good
    print(json.dumps(verdicts))


if __name__ == "__main__":
    gc.disable()  # it would look through the loaded engine many times in vain
    os.environ["APPWORLD_ROOT"] = sys.argv[1]
    main(Path(sys.argv[1]))
