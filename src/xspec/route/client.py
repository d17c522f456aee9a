"""The route: every model call of an execution goes out here, guarded, paced, retried, recorded."""

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypedDict

from xspec.errors import RouteStopped, SpecDrift
from xspec.records.rows import AttemptEnded, AttemptStarted, Place
from xspec.route.address import check_proxy
from xspec.route.body import fixed_fields, opening
from xspec.route.conversation import Content, Pins
from xspec.route.drift import Drift, DriftWatch, References, Served, Settle
from xspec.route.exchange import Outcome, exchange
from xspec.route.faults import AgentFault, CallFailed
from xspec.route.foreign import Observed
from xspec.route.guard import Guard, Sending
from xspec.route.keys import fingerprint
from xspec.route.lane import Lane, PlainClient, key_of
from xspec.route.members import Binding, choose, locate
from xspec.route.pacing import Pacers
from xspec.route.reply import Reply
from xspec.route.retry import AttemptFailed, Sleep, Tally, retrying
from xspec.route.stored import StoredSpec
from xspec.route.streaming import Relay
from xspec.route.transport import check_ca, guarded_transport, http_client
from xspec.spec.canonical import digest_of
from xspec.spec.models import ExperimentSpec

Record = Callable[[AttemptStarted | AttemptEnded], None]


class _Where(TypedDict):
    """What both rows of an attempt say alike."""

    run: int
    task: str
    take: int
    step: int
    call: int
    attempt: int
    member: str


class Route:
    """Sends the model calls of one spec.

    `spec_bytes` are the spec's canonical bytes and `spec_path` the stored file that holds the same. Keys
    are read from `environ` here and now. `bindings` gives the address of each member that xspec starts
    itself, by member name. `record` gets a row before an attempt leaves and one when it is over.
    `fingerprints` (variable → key fingerprint) and `references` (see xspec.route.drift) come from the lock
    of an earlier stint; `settle` is told what goes into the lock of this one. `limit` bounds the attempts
    under way at once; routes of one process that share a provider's limit share `pacers`. `sleep` and
    `clock` (seconds since the epoch) are for tests.

    Raises UserError if a key, base URL, proxy or CA file cannot be used.
    """

    def __init__(
        self,
        spec_bytes: bytes,
        spec_path: Path,
        *,
        record: Record,
        environ: Mapping[str, str] = os.environ,
        bindings: Mapping[str, Binding] | None = None,
        fingerprints: Mapping[str, str] | None = None,
        references: References | None = None,
        settle: Settle = lambda member, kind, value: None,
        ca_bytes: bytes | None = None,
        limit: int = 16,
        pacers: Pacers | None = None,
        sleep: Sleep = asyncio.sleep,
        clock: Callable[[], float] = time.time,
    ) -> None:
        spec = ExperimentSpec.model_validate_json(spec_bytes)
        members = spec.route.members
        stored = StoredSpec(spec_bytes, spec_path)
        self.spec_id = stored.id
        self._route = spec.route
        self._record = record
        self._sleep = sleep
        self._clock = clock
        self._drift = DriftWatch(spec.route, spec.drift, references or {}, settle)
        self._proven = {name for name, settled in (references or {}).items() if settled}
        self._stopped: RouteStopped | None = None

        check_proxy(spec.route.proxy)
        check_ca(spec.route.ca, ca_bytes)
        keys = {member.name: key_of(member, environ) for member in members}
        variables = {m.name: m.api_key_env for m in members if m.kind == "openai"}
        self.fingerprints = {variables[name]: fingerprint(keys[name]) for name in variables}
        """Variable → fingerprint of the key it held when the route was made: for the lock."""
        frozen = {**self.fingerprints, **(fingerprints or {})}
        by_member = {
            n: frozen[variables[n]] if n in variables else fingerprint(key) for n, key in keys.items()
        }
        addresses = {member.name: locate(member, (bindings or {}).get(member.name)) for member in members}
        origins = {name: address(Place(0, "-", 0, 0)).origin for name, address in addresses.items()}
        transport = guarded_transport(
            Guard(stored, spec, addresses, by_member),
            secure=any(origin.startswith("https:") for origin in origins.values()),
            ca=ca_bytes,
            proxy=spec.route.proxy,
        )
        self._http = http_client(transport)
        pacers = pacers or Pacers(limit)
        fixed = {member.name: fixed_fields(member, spec.sampling) for member in members}
        self._lanes = {
            member.name: Lane(
                member=member,
                key=keys[member.name],
                fixed=fixed[member.name],
                opening=opening(fixed[member.name]),
                locate=addresses[member.name],
                client=PlainClient(keys[member.name], origins[member.name], self._http, spec.route.timeout_s),
                transport=transport,
                pacer=pacers.of(
                    origins[member.name], fingerprint(keys[member.name]), shared=member.kind == "openai"
                ),
            )
            for member in members
        }

    def __repr__(self) -> str:
        return f"Route({self.spec_id}, members {', '.join(self._lanes)})"

    async def aclose(self) -> None:
        await self._http.aclose()

    @property
    def stopped(self) -> RouteStopped | None:
        """Why every further call is refused; None while none is."""
        return self._stopped

    @property
    def secrets(self) -> list[str]:
        """The keys of the members, for whoever writes down what another program sends."""
        return sorted({lane.key for lane in self._lanes.values()})

    async def call(
        self, content: Content, pins: Pins | Observed, place: Place, relay: Relay | None = None
    ) -> Reply:
        """One logical request with its retries; with a `relay` it is streamed (see xspec.route.streaming).

        Raises SpecDrift if the request is not as frozen (nothing was sent), RouteStopped if going on is
        useless (then for every later call too), CallFailed if the retries are used up, AgentFault if the
        request was refused for what the agent put into it, Contradiction for a foreign body that asks for something
        else.
        """
        tally = Tally()
        loop = retrying(self._route.retry, self._route.max_wait_s, tally, self._sleep)
        try:
            reply: Reply = await loop(self._attempt, content, pins, place, tally, relay)
            return reply
        except AttemptFailed as failed:
            fault, answered = failed.fault, failed.answered
        # Raised out here, so that nothing whose text was not scrubbed hangs on it as its context.
        error = fault.error(tally.attempts)
        if isinstance(error, RouteStopped):
            self._stopped = error
        if isinstance(error, CallFailed | AgentFault):
            error.answered = answered
        raise error

    async def _attempt(
        self, content: Content, pins: Pins | Observed, place: Place, tally: Tally, relay: Relay | None
    ) -> Reply:
        if self._stopped is not None:
            raise RouteStopped(
                self._stopped.cause, "the route was stopped before this call", self._stopped.hint
            )
        number = tally.attempts
        lane = self._lanes[choose(self._route, place, number).name]
        name = lane.member.name
        body = content.wire(lane)
        digest = digest_of(body)
        where = _Where(
            run=place.run,
            task=place.task,
            take=place.take,
            step=place.step,
            call=place.call,
            attempt=number,
            member=name,
        )
        queued = time.perf_counter()
        async with lane.pacer.slot(tally.since, tally.waited_out) as slot:
            began = time.perf_counter()
            waited_s = tally.pause_s + began - queued
            tally.waited_s += waited_s
            self._record(
                AttemptStarted(
                    **where,
                    at=self._clock(),
                    spec_id=self.spec_id,
                    request_digest=digest,
                    concurrency=slot.concurrency,
                )
            )
            tally.attempts += 1
            outcome = Outcome("internal_error")
            drift = Drift([], [])
            try:
                # A foreign request that is refused as bad at first may be just that: it says nothing of the route.
                proven = name in self._proven or isinstance(pins, Observed)
                outcome = await exchange(
                    lane,
                    body,
                    Sending(place, number, pins),
                    self._route,
                    proven=proven,
                    clock=self._clock,
                    relay=relay,
                )
                if outcome.completion is not None:
                    drift = self._drift.compare(name, outcome.completion.served)
            except SpecDrift:
                outcome = Outcome("spec_drift")
                raise
            except asyncio.CancelledError:
                outcome = Outcome("cancelled")
                raise
            finally:
                done = outcome.completion
                served = done.served if done is not None else Served(None, None, None)
                self._record(
                    AttemptEnded(
                        **where,
                        at=self._clock(),
                        status=outcome.status,
                        error=outcome.error,
                        waited_s=waited_s,
                        latency_s=time.perf_counter() - began,
                        prompt_tokens=done.prompt_tokens if done is not None else None,
                        completion_tokens=done.completion_tokens if done is not None else None,
                        served_model=served.model,
                        fingerprint=served.fingerprint,
                        upstream=served.upstream,
                        request_ids=outcome.request_ids,
                        drift=drift.seen,
                    )
                )
            left = outcome.allowance
            if left is not None:
                slot.foresee(left.requests, min(left.reset_s, self._route.max_wait_s))
            if outcome.fault is not None:
                if outcome.fault.again == "wait":
                    # Calls that queue behind the pause wait no longer than they would for a 429 of their own.
                    asked_s = outcome.fault.wait_s
                    pause_s = None if asked_s is None else min(asked_s, self._route.max_wait_s)
                    tally.waited_out = slot.slow_down(pause_s)
                tally.count(outcome.fault)
                raise AttemptFailed(outcome.fault, outcome.answered)
        assert done is not None
        self._proven.add(name)
        return Reply(
            message=done.message,
            finish_reason=done.finish_reason,
            prompt_tokens=done.prompt_tokens,
            completion_tokens=done.completion_tokens,
            attempts=tally.attempts,
            waited_s=tally.waited_s,
            request_digest=digest,
            served_model=served.model,
            member=name,
            drift=drift.invalidating,
            others=done.others,
            content_type=outcome.answered.content_type if outcome.answered is not None else "",
            body=outcome.answered.body if outcome.answered is not None else b"",
        )
