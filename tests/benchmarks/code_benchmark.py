"""A benchmark for tests of agents that write code: a bank, as `apis.bank`. Loaded in a worker, never here.

Each task wants three payments and their sum as its answer; one payee's account has to be looked up.
"""

import contextlib
import io
import traceback
from typing import Any

from xspec.benchmarks.protocol import BadInput

TASKS = 40
PAYEES = ("ann", "bea", "cem")


def make(version: str, split: str, settings: dict[str, Any]) -> "CodeBank":
    if version != "1":
        raise BadInput(f"codebank has no version {version!r}; it has 1")
    return CodeBank()


class App:
    """Calls of one app, each noted as `app.api` with its arguments."""

    def __init__(self, name: str, noted: list[dict[str, Any]], **apis: Any) -> None:
        for api, function in apis.items():
            setattr(self, api, self._noting(f"{name}.{api}", function, noted))

    @staticmethod
    def _noting(name: str, function: Any, noted: list[dict[str, Any]]) -> Any:
        def call(**arguments: Any) -> Any:
            noted.append({"name": name, "arguments": arguments})
            return function(**arguments)

        return call


class Apis:
    def __init__(self, **apps: App) -> None:
        self.__dict__.update(apps)


class CodeBank:
    def __init__(self) -> None:
        self.open("codebank.task_0", 0)

    def describe(self) -> dict[str, Any]:
        tasks = [
            {
                "id": f"codebank.task_{n}",
                "cluster": f"codebank.scenario_{n // 2}",
                "stratum": "codebank",
                "difficulty": str(1 + n % 2),
                "instruction": f"Pay {n + 1} to each of {', '.join(PAYEES)}. How much is that in all?",
                "toolset": "code",
                "data": None,
                "solution": None,
            }
            for n in range(TASKS)
        ]
        return {
            "benchmark": "codebank",
            "version": "1",
            "split": "all",
            "package": {"codebank": "1"},
            "toolsets": {"code": []},
            "system": {},
            "tasks": tasks,
        }

    def open(self, task: str, run: int) -> None:
        self.amount = int(task.rpartition("_")[2]) + 1
        self.paid: list[tuple[str, int]] = []
        self.completed: dict[str, Any] | None = None
        self.noted: list[dict[str, Any]] = []
        bank = App("bank", self.noted, list_accounts=self._list_accounts, send_payment=self._send_payment)
        supervisor = App("supervisor", self.noted, complete_task=self._complete_task)
        self.namespace: dict[str, Any] = {"apis": Apis(bank=bank, supervisor=supervisor)}

    def _list_accounts(self) -> dict[str, str]:
        return {name: f"acc-{name}" for name in PAYEES}

    def _send_payment(self, account: str, amount: int) -> str:
        if account not in self._list_accounts().values():
            raise ValueError(f"there is no account {account!r}")
        self.paid.append((account, amount))
        return f"paid {amount} to {account}"

    def _complete_task(self, answer: Any = None, status: str = "success") -> str:
        self.completed = {"answer": answer, "status": status}
        return "noted"

    def act(self, action: dict[str, Any]) -> dict[str, Any]:
        self.noted.clear()
        printed, failed = io.StringIO(), False
        with contextlib.redirect_stdout(printed):
            try:
                exec(compile(action["code"], "<block>", "exec"), self.namespace)
            except Exception:
                failed = True
                traceback.print_exc(limit=0, file=printed)
        observation = {
            "content": printed.getvalue() or "done",
            "error": failed,
            "calls": [dict(call) for call in self.noted],
        }
        return {**observation, "done": True} if self.completed else observation

    def judge(self, answer: str) -> dict[str, Any]:
        wanted = [(f"acc-{name}", self.amount) for name in PAYEES]
        completed = self.completed or {}
        passed = (
            self.paid == wanted
            and completed.get("status") == "success"
            and completed.get("answer") == 3 * self.amount
        )
        return {"passed": passed, "detail": {"paid": len(self.paid), "completed": completed}}

    def close(self) -> None:
        self.paid = []

    def solution(self, task: str) -> dict[str, Any]:
        amount = int(task.rpartition("_")[2]) + 1
        pays = [
            {"code": f'print(apis.bank.send_payment(account=accounts["{name}"], amount={amount}))'}
            for name in PAYEES
        ]
        look = {"code": "accounts = apis.bank.list_accounts()\nprint(accounts)"}
        end = {"code": f'apis.supervisor.complete_task(answer={3 * amount}, status="success")'}
        calls = [look, *pays, end]
        return {
            "calls": calls,
            "answer": "",
            "commit": len(calls) - 1,
            "give_up": {"code": 'apis.supervisor.complete_task(status="fail")'},
            "detour": {"code": "print(len(apis.bank.list_accounts()))"},
        }
