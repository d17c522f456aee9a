"""AppWorld's engine in a worker: warmed once, then one world a process. Runs in the environment `appworld`.

The engine freezes clocks, reseeds `random`, keeps open databases in module globals and cannot hold two worlds in one
process; so the warm process opens and closes one world, and each fork opens one.
"""

import contextlib
import gc
import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from xspec.benchmarks.appworld_output import bounded_capture
from xspec.benchmarks.protocol import Observation, Verdict, WorldBroke

STATE = "world.json"
"""What the trial's folder says of its world: interactions, and whether the agent declared to be done."""

_ARGUMENT_CHARS = 1_000
_CALLS_CHARS = 200_000


class Engine:
    """The engine, imported and warm. `world` are the parameters of its AppWorld class."""

    def __init__(self, world: Mapping[str, Any], warm_with: str) -> None:
        sys.dont_write_bytecode = True  # judging imports a file that lies among the data
        import appworld.environment  # type: ignore[import-not-found]
        from appworld.common.path_store import PathStore  # type: ignore[import-not-found]

        import appworld

        # Outputs go below the working folder, which is the trial's own. A relative path cannot hold the word memory,
        # which the engine takes for a database in memory.
        PathStore.experiment_outputs = property(lambda self: ".")
        appworld.environment.capture_output = bounded_capture()
        self._appworld = appworld
        self._parameters = dict(world)
        self._warm(warm_with)

    def open(self, task: str, folder: str) -> "EngineWorld":
        """Opens the process's one world; what is kept of it goes to `folder`."""
        os.chdir(folder)
        world = self._appworld.AppWorld(
            task_id=task, experiment_name="", load_ground_truth=False, **self._parameters
        )
        return EngineWorld(world)

    def judge(self, task: str, folder: str) -> Verdict:
        """The engine's verdict on what a world kept, in a process that opened none."""
        from appworld.evaluator import evaluate_task  # type: ignore[import-not-found]

        os.chdir(folder)
        found = evaluate_task(task, "").to_dict()
        state = json.loads(Path(STATE).read_bytes())
        return {
            "passed": bool(found["success"]),
            "detail": {
                "success": bool(found["success"]),
                "completed": state["completed"],
                "interactions": state["interactions"],
                "difficulty": found["difficulty"],
                "num_tests": found["num_tests"],
                **{
                    kind: [{key: item[key] for key in ("requirement", "label")} for item in found[kind]]
                    for kind in ("passes", "failures")
                },
            },
        }

    def _warm(self, task: str) -> None:
        """Opens, uses, judges and closes a world, so that forks find everything loaded that a first world loads."""
        from appworld.requester import (  # type: ignore[import-not-found]
            _get_api_name_to_doc,
            _get_app_api_name_to_argument_names,
        )

        before = os.getcwd()
        with tempfile.TemporaryDirectory(prefix="xspec-warm-") as folder:
            world = self.open(task, folder)
            world.act("print(apis.supervisor.show_profile())\nprint(apis.api_docs.show_app_descriptions())")
            for app in world.apps():
                # Made from the app's schema at the first call of the app and then kept, under these very arguments.
                _get_app_api_name_to_argument_names(app, include_private_apis=False)
                _get_api_name_to_doc(app, include_private_apis=True)
            world.close()
            self.judge(task, folder)
            os.chdir(before)
        self._appworld.AppWorld.close_all()
        from appworld.apps.model_lib import CachedDBHandler  # type: ignore[import-not-found]

        CachedDBHandler.reset()
        gc.collect()
        _await_one_thread()


class EngineWorld:
    """The open world of this process."""

    def __init__(self, world: Any) -> None:
        self._world = world
        self._interactions = 0
        self._completed = False
        self._calls: list[dict[str, Any]] = []
        world.shell._tee = lambda channel: (
            contextlib.nullcontext()
        )  # it keeps all output a second time, for a history
        self._record_calls()
        self._keep()

    def act(self, code: str) -> Observation:
        """Runs a block of code. Raises WorldBroke if the world's state could not be kept."""
        self._calls.clear()
        try:
            content = self._world.execute(code)
        except OSError as error:  # errors of the code itself come back as text
            raise WorldBroke(f"the world's state could not be kept: {error.strerror or error}") from None
        except BaseException as error:  # what the code raised where the engine does not look for it
            content = self._after_escape(error)
        self._interactions += 1
        self._completed = self._is_completed()
        self._keep_state()
        return {
            "content": content,
            "error": content.startswith("Execution failed."),
            "done": self._completed,
            "calls": _plain_calls(self._calls),
        }

    def apps(self) -> list[str]:
        return list(self._world.apis.keys())

    def close(self) -> None:
        self._world.close()

    def _record_calls(self) -> None:
        requester = self._world.requester
        request = requester.request

        def recorded(_app_name: str, _api_name: str, *args: Any, track: bool = True, **data: Any) -> Any:
            if track:
                arguments = {
                    name: value
                    for name, value in data.items()
                    if name not in ("client", "raise_on_failure", "show")
                }
                self._calls.append({"name": f"{_app_name}.{_api_name}", "arguments": arguments})
            return request(_app_name, _api_name, *args, track=track, **data)

        requester.request = recorded

    def _is_completed(self) -> bool:
        try:
            return bool(self._world.task_completed())
        except Exception:  # the code has broken what answers that; then it declared nothing
            return False

    def _after_escape(self, error: BaseException) -> str:
        """Does what the engine leaves undone when an exception leaves `execute`.

        If no memory is left for it, the process ends; replaying the actions then tells whose fault it is.
        """
        signal.alarm(0)
        self._world.safety_guard.disable()
        content = f"Execution failed. Traceback:\n{type(error).__name__}: {error}"
        try:
            self._keep()
        except MemoryError:
            os._exit(1)
        return content

    def _keep(self) -> None:
        try:
            self._world._save_state(self._world.output_db_home_path_on_disk)
            self._world.save_logs()
            self._keep_state()
        except OSError as error:
            raise WorldBroke(f"the world's state could not be kept: {error.strerror or error}") from None

    def _keep_state(self) -> None:
        state = {"interactions": self._interactions, "completed": self._completed}
        try:
            Path(STATE).write_text(json.dumps(state) + "\n")
        except OSError as error:
            raise WorldBroke(f"the world's state could not be kept: {error.strerror}") from None


def _plain_calls(calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The calls as JSON, with long texts cut; without arguments once they have become too many to keep."""
    plain: list[dict[str, Any]] = []
    used = 0
    for call in calls:
        text = json.dumps(call["arguments"], default=str, skipkeys=True)
        arguments = json.loads(text) if len(text) <= _ARGUMENT_CHARS else {"cut": text[:_ARGUMENT_CHARS]}
        used += min(len(text), _ARGUMENT_CHARS)
        plain.append({"name": call["name"], "arguments": arguments if used <= _CALLS_CHARS else {}})
    return plain


def _await_one_thread() -> None:
    """The thread that served the closed world's APIs ends on its own, a little later."""
    for thread in threading.enumerate():
        if thread is not threading.main_thread():
            thread.join(5)
    end = time.monotonic() + 5
    while sys.platform == "linux" and len(os.listdir("/proc/self/task")) > 1 and time.monotonic() < end:
        time.sleep(0.01)
