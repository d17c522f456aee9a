"""Makes a small AppWorld root with own tasks: `<appworld's interpreter> build_root.py FOLDER`.

Nothing of AppWorld's data is needed or kept in this repository: the databases and the API documentation are made
on the spot by the installed package, and must not be committed (they derive from its protected part).
"""

import gc
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NOW = "2030-03-04T10:00:00"
SPLITS = {
    "train": ("alarmoff", "tagcount"),
    "dev": ("chores",),
    "test_normal": ("alarmoff", "tagcount", "chores", "rota"),
    "test_challenge": ("rota",),
}
"""Split -> its scenarios. Unlike the official ones, these overlap: one of them has to hold all."""


def build(root: Path) -> None:
    """Writes data/ below `root`, the same bytes each time."""
    from appworld.apps import get_all_apps
    from appworld.collections.models import ModelCollection
    from own_root.accounts import fill
    from own_root.scenarios import TASKS

    data = root / "data"
    write_api_docs(data / "api_docs" / "standard")
    with frozen_time():
        base = ModelCollection.load(":memory:own", ":memory:own", load_apps=get_all_apps(), create_db=True)
        fill(base)
        base.save(str(data / "base_dbs"), format="full")
        base.close()
        for task in TASKS:
            write_task(data, task)
    for split, scenarios in SPLITS.items():
        ids = [task.id for task in TASKS if task.id.split("_")[0] in scenarios]
        write(data / "datasets" / f"{split}.txt", "\n".join(ids) + "\n")


def write_api_docs(folder: Path) -> None:
    """What the world shows when asked for documentation, derived from the installed code."""
    from appworld.api_docs import prepare_api_docs
    from appworld.apps import get_all_apps
    from appworld.common.constants import CANARY_STRING

    for app in get_all_apps(skip_admin=True):
        docs = prepare_api_docs(app, include_private_apis=False)
        write_json(
            folder / f"{app}.json", {doc["api_name"]: {**doc, "canary_string": CANARY_STRING} for doc in docs}
        )


def write_task(data: Path, task: Any) -> None:
    """Writes the folder of one task: specs, changes of the databases, ground truth, and xspec's solution."""
    from appworld.apps import get_all_apps
    from appworld.collections.models import ModelCollection
    from appworld.common.constants import DB_VERSION
    from own_root.accounts import APPS
    from own_root.people import PASSWORD

    folder = data / "tasks" / task.id
    specs = {
        "instruction": task.instruction,
        "supervisor": task.supervisor.reachable,
        "datetime": NOW,
        "db_version": DB_VERSION,
    }
    write_json(folder / "specs.json", specs)

    models = ModelCollection.load(f":memory:{task.id}", str(data / "base_dbs"), load_apps=get_all_apps())
    supervisor = models.supervisor.Supervisor.create(**task.supervisor.reachable, birthday="2000-01-01")
    supervisor.save()
    for app in APPS:
        models.supervisor.AccountPassword.create(
            supervisor_id=supervisor.id, account_name=app, password=PASSWORD
        ).save()
    models.supervisor.Task.create(supervisor_id=supervisor.id, instruction=task.instruction).save()
    models.save(str(folder / "dbs"), format="changes")
    models.close()

    truth = folder / "ground_truth"
    counts = {"num_apps": len(task.apps), "num_apis": 0, "num_api_calls": 0, "num_solution_code_lines": 0}
    write_json(truth / "metadata.json", {"mode": "minimal", "difficulty": task.difficulty, **counts})
    write_json(truth / "public_data.json", {})
    write_json(truth / "private_data.json", dict(task.private))
    write_json(truth / "answer.json", task.answer)
    labels = {True: "no_op_pass", False: "no_op_fail"}
    tests = [{"requirement": text, "label": labels[free]} for text, free in task.requirements.items()]
    write_json(truth / "test_data.json", tests)
    write_json(truth / "xspec_solution.json", task.solution)
    write(truth / "evaluation.py", task.evaluation.lstrip())


@contextmanager
def frozen_time() -> Iterator[None]:
    """The clock stands still at NOW, so that rows get the same times in each build."""
    from datetime import datetime

    from appworld.apps.api_lib import set_local_date_and_time, unset_local_date_and_time

    freezer = set_local_date_and_time(datetime.fromisoformat(NOW))
    try:
        yield
    finally:
        unset_local_date_and_time(freezer)


def write_json(path: Path, value: Any) -> None:
    write(path, json.dumps(value, indent=1) + "\n")


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    gc.disable()  # it would look through the loaded engine many times in vain
    target = Path(sys.argv[1]).resolve()
    target.mkdir(parents=True, exist_ok=True)
    os.environ["APPWORLD_ROOT"] = str(target)  # read by the package when it is imported
    build(target)
