"""What a task of the own root consists of, before it is written into the folders AppWorld reads."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from textwrap import dedent
from typing import Any

from own_root.people import Person

GIVE_UP = 'apis.supervisor.complete_task(status="fail")'
DETOUR = "print(apis.supervisor.show_profile())"


@dataclass(frozen=True)
class OwnTask:
    """A task, its evaluation, and a known way to pass.

    `requirements` maps the texts of the evaluation's tests to whether doing nothing passes them. `blocks` is the
    solution, one code block a step; the last one declares completion. Giving up before block `commit` or any
    earlier one fails.
    """

    id: str
    difficulty: int
    supervisor: Person
    apps: tuple[str, ...]
    instruction: str
    evaluation: str
    requirements: Mapping[str, bool]
    blocks: tuple[str, ...]
    commit: int
    answer: str | int | None = None
    private: Mapping[str, Any] = field(default_factory=dict)

    @property
    def solution(self) -> dict[str, Any]:
        """The solution as xspec's worker reads it."""
        return {
            "calls": [{"code": dedent(block).strip()} for block in self.blocks],
            "commit": self.commit,
            "give_up": {"code": GIVE_UP},
            "detour": {"code": DETOUR},
        }


def log_in(*apps: str) -> str:
    """The first block of each solution: a token for each app."""
    names = {"phone": "phone_number"}
    lines = [
        "me = apis.supervisor.show_profile()",
        'words = {own["account_name"]: own["password"] for own in apis.supervisor.show_account_passwords()}',
    ]
    for app in apps:
        name = names.get(app, "email")
        lines.append(
            f'{app} = apis.{app}.login(username=me["{name}"], password=words["{app}"])["access_token"]'
        )
    return "\n".join(lines)
