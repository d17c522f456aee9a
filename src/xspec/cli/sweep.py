"""A sweep in processes (`hydra/launcher=joblib` and its kin): each job executes its own arm, and every end is told.

What the sweep will run is frozen before its first job: all arms were compiled in this process, and a job that compiles
to another spec, or finds other configuration files, refuses.
"""

import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from xspec.cli.launcher import launcher_of
from xspec.cli.orphan import end_with_parent
from xspec.cli.say import say
from xspec.errors import UserError, XspecError
from xspec.experiment.compile import Compiled
from xspec.experiment.execute import ArmEnd, SweepEnd, execute, newest_execution
from xspec.spec.compose import conf_digest, conf_dir, plain_of
from xspec.spec.store import Store, write_whole

_FROZEN = "XSPEC_SWEEP"
"""The variable by which jobs learn what was frozen: digest of the configuration, ids of the specs, the command."""


def launch(overrides: Sequence[str], arms: Sequence[Compiled], store: Store, command: Sequence[str]) -> int:
    """Runs the jobs; tells how each arm ended and returns the exit code."""
    from xspec.cli.hydra_run import hydra_run
    from xspec.cli.outcome import tell_end

    launcher = launcher_of(overrides)
    frozen = {"conf": conf_digest(conf_dir()), "specs": [a.spec.id for a in arms], "command": list(command)}
    os.environ[_FROZEN] = json.dumps(frozen)
    os.environ["XSPEC_LAUNCHER"] = launcher
    extra = []
    if launcher == "joblib" and not any("hydra.launcher.n_jobs" in o for o in overrides):
        extra.append(f"hydra.launcher.n_jobs={len(arms)}")  # waiting dominates, not cores
    interrupted = False
    with tempfile.TemporaryDirectory(prefix="xspec-sweep-") as notes:
        try:
            hydra_run([*overrides, *extra], execute_job, multirun=True, notes=notes)
        except KeyboardInterrupt:
            interrupted = True
        except XspecError:
            raise
        except Exception as error:  # a launcher raises what it likes when a job's process is killed
            say(f"the launcher ended with {type(error).__name__}: a job's process was ended from outside")
        ends = [json.loads(path.read_bytes()) for path in sorted(Path(notes).glob("end-*.json"))]
    told = {end["spec_id"]: end for end in ends}
    code = tell_end(SweepEnd([_end_of(store, arm) for arm in arms], interrupted=interrupted), store)
    for arm in arms:
        end = told.get(arm.spec.id)
        name = arm.arm or arm.spec.id
        if end is None and interrupted:
            continue
        if end is None:
            say(f"{name}: its job ended without a word; go on with the same command")
        elif end["message"] is not None:
            say(f"{name}: {end['message']}")
        code = max(code, end["code"] if end is not None else 3)
    return code


def execute_job(config: Any) -> None:
    """One job in a process of the launcher's: compile, check that it is what was frozen, execute, leave its end."""
    from hydra.core.hydra_config import HydraConfig

    from xspec.cli.run import compile_plain

    end_with_parent()
    hydra = HydraConfig.get()
    note = Path(hydra.sweep.dir) / f"end-{hydra.job.num}.json"
    frozen = json.loads(os.environ[_FROZEN])
    spec_id = None
    try:
        if conf_digest(conf_dir()) != frozen["conf"]:
            raise UserError("the configuration was edited during the sweep; start it again")
        compiled, store = compile_plain(plain_of(config), frozen["command"])
        spec_id = compiled.spec.id
        if spec_id not in frozen["specs"]:
            raise UserError(
                f"this job compiles to {spec_id}, which is none of the sweep's specs; start it again"
            )
        end = execute([compiled], store, launcher=os.environ["XSPEC_LAUNCHER"])
        code, message = end.exit_code(), str(end.stopped) if end.stopped else None
        if all(arm.already_finished for arm in end.arms):
            message = "was finished before; nothing was sent"
    except XspecError as error:
        code, message = error.exit_code, str(error)
    except KeyboardInterrupt:
        code, message = 130, None
    write_whole(note, json.dumps({"spec_id": spec_id, "code": code, "message": message}).encode())
    sys.stdout.flush()


def _end_of(store: Store, compiled: Compiled) -> ArmEnd:
    return newest_execution(store, compiled) or ArmEnd(compiled, "", [], complete=False)
