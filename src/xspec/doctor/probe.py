"""Probes: requests of the doctor's own, held by the guard to a spec of their own.

A probe is not a call of the experiment: other texts, other tools. So the spec looked at is not stretched to let it
pass; one is compiled from the same member, sampling, time limit and retry policy, and its bytes are what the guard
re-hashes and compares with. It lies in a temporary folder and never in the store.
"""

import asyncio
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import httpx2

from xspec import __version__
from xspec.records.rows import AttemptEnded, AttemptStarted, Place
from xspec.route.address import Address
from xspec.route.body import fixed_fields, opening
from xspec.route.client import Route
from xspec.route.conversation import Conversation, Pins, Tools, text_digest
from xspec.route.guard import SENDING, Guard, Sending
from xspec.route.keys import fingerprint
from xspec.route.lane import key_of
from xspec.route.listing import ListingGuard, list_address
from xspec.route.members import Binding, locate
from xspec.route.reply import Reply
from xspec.route.stored import StoredSpec
from xspec.route.transport import guarded_transport, http_client
from xspec.spec.canonical import canonical_bytes, digest_of, short_id
from xspec.spec.members import Member
from xspec.spec.models import ExperimentSpec

SYSTEM = "You answer briefly and exactly."
LONGEST_WAIT_S = 15.0
"""How long the 429s of one probe are waited out: a person is looking on."""
AT_ONCE = 4

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}


@dataclass(frozen=True, slots=True)
class Probe:
    """One request: its task name, what it says, and its tools."""

    task: str
    instruction: str
    tools: Tools | None = None

    def conversation(self) -> Conversation:
        return Conversation(SYSTEM, self.instruction, self.tools)

    def pins(self) -> Pins:
        tools = self.tools.digest if self.tools is not None else None
        return Pins(text_digest(SYSTEM), text_digest(self.instruction), tools)


CALL = Probe("doctor.call", "Answer with the single word: ready")
TOOLS = Probe("doctor.tools", "What is the weather in Lisbon? Use the tool.", Tools([WEATHER]))
TEXT = Probe("doctor.text", "Name eight animals that live in the sea, one a line, with one adjective each.")
PROBES = (CALL, TOOLS, TEXT)


@dataclass(frozen=True, slots=True)
class Raw:
    """A reply as it came."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    at: float
    """Wall-clock seconds halfway between request and reply."""


@dataclass(slots=True)
class Prober:
    """Sends probes to one member. `rows` keeps the attempts made so far, `references` what answered first."""

    spec: ExperimentSpec
    member: Member
    folder: Path
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)
    binding: Binding | None = None
    ca: bytes | None = None
    rows: list[AttemptStarted | AttemptEnded] = field(default_factory=list)
    references: dict[str, str] = field(default_factory=dict)

    def at_path(self, path: str) -> "Prober":
        """The same for another path of the member."""
        return replace(self, member=self.member.model_copy(update={"path": path}), rows=[], references={})

    @property
    def address(self) -> Address:
        return locate(self.member, self.binding)(Place(0, CALL.task, 0, 0))

    @property
    def ended(self) -> list[AttemptEnded]:
        return [row for row in self.rows if isinstance(row, AttemptEnded)]

    def probe_spec(self) -> bytes:
        """Canonical bytes of the doctor's own spec."""
        plain = self.spec.plain()
        route = {
            name: plain["route"][name]
            for name in ("timeout_s", "retry", "proxy", "ca")
            if name in plain["route"]
        }
        texts = [[p.task, p.instruction, p.tools.digest if p.tools else None] for p in PROBES]
        return canonical_bytes(
            {
                **plain,
                "benchmark": {
                    "kind": "doctor",
                    "version": "1",
                    "split": "all",
                    "tasks": [p.task for p in PROBES],
                    "manifest": digest_of(canonical_bytes(texts)),
                },
                "agent": {**plain["agent"], "prompt": text_digest(SYSTEM)},
                "route": {
                    **route,
                    "mode": "fixed",
                    "members": [self.member.model_dump(exclude_none=True)],
                    "max_wait_s": min(self.spec.route.max_wait_s, LONGEST_WAIT_S),
                },
                "guide": {"kind": "none"},
                "k": 1,
            }
        )

    async def calls(self, probe: Probe, count: int, *, at_once: int = 1) -> list[Reply]:
        """`count` calls through the route as trials make them. Raises what the route raises."""
        data, path = self._stored()
        bindings = {self.member.name: self.binding} if self.binding is not None else None
        route = Route(
            data,
            path,
            record=self.rows.append,
            environ=self.environ,
            bindings=bindings,
            references={self.member.name: self.references},
            settle=self._settle,
            ca_bytes=self.ca,
            limit=at_once,
        )
        first = len(self.ended)
        gate = asyncio.Semaphore(at_once)

        async def one(number: int) -> Reply:
            async with gate:
                place = Place(0, probe.task, 0, first + number)
                return await route.call(probe.conversation(), probe.pins(), place)

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(one(number)) for number in range(count)]
        except* Exception as errors:
            found: BaseException = errors
            while isinstance(found, BaseExceptionGroup):
                found = found.exceptions[0]
            raise found from None
        finally:
            await route.aclose()
        return [task.result() for task in tasks]

    async def streamed(self) -> Raw:
        """The reply to a request that asks for a stream, whole."""
        data, path = self._stored()
        spec = ExperimentSpec.model_validate_json(data)
        also = {"stream": True}
        name, key = self.member.name, key_of(self.member, self.environ)
        addresses = {name: locate(self.member, self.binding)}
        guard = Guard(StoredSpec(data, path), spec, addresses, {name: fingerprint(key)}, also)
        body = CALL.conversation().body(opening({**fixed_fields(self.member, spec.sampling), **also}))
        token = SENDING.set(Sending(Place(0, CALL.task, 0, 0), 0, CALL.pins()))
        try:
            return await self._raw(guard, "POST", self.address, key, body)
        finally:
            SENDING.reset(token)

    async def models(self) -> Raw:
        """The reply to a request for the model list."""
        key, address = key_of(self.member, self.environ), list_address(self.address)
        return await self._raw(ListingGuard(address, fingerprint(key)), "GET", address, key)

    async def _raw(
        self, guard: Guard | ListingGuard, method: str, address: Address, key: str, body: bytes | None = None
    ) -> Raw:
        route = self.spec.route
        secure = address.scheme == "https"
        headers = {"authorization": f"Bearer {key}", "user-agent": f"xspec/{__version__}"}
        if body is not None:
            headers["content-type"] = "application/json"
        transport = guarded_transport(guard, secure=secure, ca=self.ca, proxy=route.proxy)
        async with http_client(transport) as http:
            began = time.time()
            async with asyncio.timeout(route.timeout_s):
                reply = await http.request(method, address.url, content=body, headers=headers)
            return Raw(
                reply.status_code,
                {name.lower(): value for name, value in reply.headers.items()},
                reply.content,
                (began + time.time()) / 2,
            )

    def _settle(self, member: str, kind: str, value: str) -> None:
        self.references[kind] = value

    def _stored(self) -> tuple[bytes, Path]:
        data = self.probe_spec()
        path = self.folder / f"{short_id('xs', data)}.json"
        if not path.exists():
            path.write_bytes(data)
        return data, path


WireError = (httpx2.HTTPError, TimeoutError, OSError)
"""What `streamed` and `models` raise if no reply came."""

__all__ = ["CALL", "TEXT", "TOOLS", "Prober", "Raw", "WireError"]
