"""Plays code blocks on the real engine: `APPWORLD_ROOT=… <appworld's interpreter> make_run.py < PLAN`.

PLAN is JSON: [{"task": …, "experiment": …, "blocks": [code, …]}]. Prints one JSON list: outputs and verdict of each.
"""

import json
import sys
from typing import Any


def play(task: str, experiment: str, blocks: list[str]) -> dict[str, Any]:
    from appworld import AppWorld

    with AppWorld(task_id=task, experiment_name=experiment, raise_on_extra_parameters=True) as world:
        outputs = [world.execute(code) for code in blocks]
        return {"outputs": outputs, "verdict": world.evaluate().to_dict()}


if __name__ == "__main__":
    print(json.dumps([play(**one) for one in json.load(sys.stdin)]))
