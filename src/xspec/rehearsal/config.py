"""The server's configuration: its members and the tasks it knows. Validated once, at the start."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from pydantic import ValidationError

from xspec.errors import UserError
from xspec.rehearsal.behaviour import Player
from xspec.rehearsal.faults import FaultDice
from xspec.rehearsal.scripts import TaskScript
from xspec.spec.members import RehearsalBehaviour, RehearsalFaults


@dataclass(frozen=True, slots=True)
class Member:
    """One simulated model: its name on the wire, how it errs, and which faults it meets."""

    key: str
    model: str
    player: Player
    dice: FaultDice


@dataclass(frozen=True, slots=True)
class RehearsalConfig:
    """Members by key, and solutions by task id. Both may be empty."""

    members: Mapping[str, Member]
    tasks: Mapping[str, TaskScript]

    @classmethod
    def parse(cls, document: bytes, source: str) -> "RehearsalConfig":
        """From a JSON document; `source` is how errors call it. Raises UserError."""
        try:
            plain = orjson.loads(document)
        except orjson.JSONDecodeError as error:
            raise UserError(f"rehearsal config {source} is not JSON: {error}") from None
        return cls.of(plain, source)

    @classmethod
    def of(cls, plain: Any, source: str = "") -> "RehearsalConfig":
        """From plain data: {"members": {key: {"model", "behaviour", "faults"}}, "tasks": {id: solution}}.

        Raises UserError.
        """
        where = f"rehearsal config {source}".rstrip()
        parts = {}
        for name in ("members", "tasks"):
            part = plain.get(name, {}) if isinstance(plain, dict) else None
            if not isinstance(part, dict):
                raise UserError(f'{where} needs the form {{"members": {{…}}, "tasks": {{…}}}}')
            parts[name] = part
        members = {key: _member(key, value, where) for key, value in parts["members"].items()}
        tasks = {task: _task(task, value, where) for task, value in parts["tasks"].items()}
        return cls(members, tasks)


def _member(key: str, plain: Any, where: str) -> Member:
    try:
        model = plain["model"]
        behaviour = RehearsalBehaviour.model_validate(plain["behaviour"])
        faults = RehearsalFaults.model_validate(plain["faults"])
    except (KeyError, TypeError):
        raise UserError(f"{where}: member {key} needs model, behaviour and faults") from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or error.title
        raise UserError(f"{where}: member {key}, {field}: {first['msg']}") from None
    if not isinstance(model, str) or not model:
        raise UserError(f"{where}: member {key} needs a model name")
    return Member(key, model, Player(behaviour), FaultDice(model, faults))


def _task(task: str, plain: Any, where: str) -> TaskScript:
    try:
        return TaskScript.of(task, plain)
    except (KeyError, TypeError, ValueError):
        raise UserError(
            f"{where}: task {task} needs instruction (text), calls (each with name and arguments, or with code), "
            "answer (text), commit (integer) and, for code, give_up (a block of it)"
        ) from None
