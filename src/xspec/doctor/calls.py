"""The checks that call the model: one minimal call, one with tools, one streamed, and the same one several times."""

import statistics
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import asdict

from xspec.counted import counted
from xspec.doctor.findings import Finding, note, ok, problem
from xspec.doctor.model_list import near_names
from xspec.doctor.probe import AT_ONCE, CALL, TEXT, TOOLS, Prober, WireError
from xspec.doctor.surroundings import resolves
from xspec.errors import RouteStopped, XspecError
from xspec.route.address import other_path
from xspec.route.faults import AgentFault, CallFailed
from xspec.route.reply import Reply
from xspec.route.verification import Verification, revealed, verify

ALONE = 5


async def minimal_call(prober: Prober, models: list[str]) -> Finding:
    """One call. The finding is a problem if there was no usable reply, and says what is likely the cause."""
    try:
        (reply,) = await prober.calls(CALL, 1)
    except RouteStopped as stop:
        return await _stopped(prober, stop, models)
    except (CallFailed, AgentFault) as failed:
        return _failed(prober, failed)
    except XspecError as error:
        return problem("call", str(error))
    both = (reply.prompt_tokens, reply.completion_tokens)
    tokens = " + ".join("unknown" if n is None else str(n) for n in both) + " tokens"
    return ok("call", f"{prober.address.url} answered in {_latency(prober):.2f} s, {tokens}")


async def _stopped(prober: Prober, stop: RouteStopped, models: list[str]) -> Finding:
    what, _, hint = str(stop).partition("; ")
    if stop.cause == "not_found" and not models:
        other = other_path(prober.address.target)
        base = prober.address.target.removesuffix(getattr(prober.member, "path", ""))
        elsewhere = prober.at_path(other.removeprefix(base))
        try:
            await elsewhere.calls(CALL, 1)
        except RouteStopped as again:
            if again.cause == "not_found":
                return problem(
                    "call", f"{what}; nor does {other} answer", "check base_url against the provider's page"
                )
        except XspecError:
            pass
        else:
            path = elsewhere.member.model_dump()["path"]
            return problem(
                "call", f"404 at {prober.address.target}, but {other} answers", f"provider.path={path}"
            )
    if stop.cause in ("model_not_found", "not_found") and models:
        model = prober.member.model
        if model not in models:
            near = near_names(model, models)
            do = f"did you mean {', '.join(near)}?" if near else f"it has {', '.join(models[:5])}"
            return problem("call", f"no model {model} there", f"provider.model=…; {do}")
    return problem("call", what, hint)


def _failed(prober: Prober, failed: CallFailed | AgentFault) -> Finding:
    what = str(failed)
    tokens = Counter(row.error for row in prober.ended)
    if failed.token == "rate_limited":
        do = (
            f"wait, lower workers, or raise route.max_wait_s ({prober.spec.route.max_wait_s:g} s in a run): calls wait "
            "their turn and are not lost"
        )
        return problem(
            "call", f"{tokens['rate_limited']} times 429 and no reply within the doctor's patience", do
        )
    if failed.token == "connection":
        host = prober.address.host
        if prober.spec.route.proxy is None and not resolves(host):
            return problem(
                "call", what, f"the host {host} is not known: check provider.base_url, or route.proxy=URL"
            )
        return problem("call", what, "is the server up, and reached from here without a proxy?")
    if failed.token == "timeout":
        return problem("call", what, "route.timeout_s=… if the model is only slow")
    return problem("call", what, "look at the provider's status page; a run would turn trials invalid")


def limits(prober: Prober) -> Iterator[Finding]:
    """What went wrong on the way to replies that came in the end."""
    faults = Counter(row.error for row in prober.ended if row.error is not None)
    if not faults:
        return
    total = len(prober.ended)
    said = ", ".join(f"{n} {token}" for token, n in faults.most_common())
    do = (
        "raise nothing: a run waits 429s out"
        if faults["rate_limited"]
        else "a run tries again, and says how often"
    )
    yield note("faults", f"{faults.total()} of {counted(total, 'attempt')} failed: {said}", do, matters=True)


async def tool_call(prober: Prober) -> Finding:
    """Whether tools are understood."""
    try:
        (reply,) = await prober.calls(TOOLS, 1)
    except XspecError as error:
        return problem("tools", str(error), "the agent needs a model and a server with tool calls")
    if reply.message.get("tool_calls"):
        return ok("tools", "the model called the tool it was offered")
    if prober.member.kind == "rehearsal":
        return ok("tools", "accepted; the simulated model uses a task's own tools only (see the trial)")
    return note(
        "tools",
        "accepted, but the model answered in words",
        "the agent works by tool calls: check that this model and server do",
        matters=True,
    )


async def streaming(prober: Prober) -> Finding:
    """Whether the provider streams. xspec does not, so either answer is fine."""
    try:
        reply = await prober.streamed()
    except WireError as error:
        return note("streaming", f"no reply ({type(error).__name__}); xspec does not stream")
    streams = reply.status == 200 and reply.body.lstrip().startswith((b"data:", b"event:", b":"))
    return ok("streaming", ("offered" if streams else "not offered") + "; xspec does not stream")


async def determinism(prober: Prober) -> AsyncIterator[Finding]:
    """The same request several times, alone and at once."""
    try:
        alone = await prober.calls(TEXT, ALONE)
        together = await prober.calls(TEXT, AT_ONCE, at_once=AT_ONCE)
    except XspecError as error:
        yield note("determinism", f"not probed: {error}", matters=True)
        return
    one, many = _texts(alone), _texts(together)
    seen = f"{ALONE} replies alone: {_kinds(one)}; {AT_ONCE} at once: {_kinds(many)}"
    if len(one | many) == 1:
        yield ok("determinism", f"{seen}, the same text (which proves nothing about longer ones)")
    elif len(one) == 1:
        yield note(
            "determinism",
            f"{seen}: replies depend on what else the server does",
            "expected; k runs measure it",
        )
    else:
        yield note(
            "determinism", f"{seen}, to the same request", "expected of most providers; k runs measure it"
        )


def verified(prober: Prober) -> Iterator[Finding]:
    """What the replies so far prove about where they came from."""
    replies = Counter(found for row in prober.ended if (found := revealed(asdict(row))) is not None)
    route = prober.spec.route.model_copy(update={"mode": "fixed", "members": (prober.member,)})
    for one in verify(route, replies):
        yield _verification(one)


def _verification(one: Verification) -> Finding:
    about = {"served_model": "served", "upstream": "upstream", "fingerprint": "fingerprint"}[one.kind]
    what = f"{one.state}: {one.why}"
    if one.state == "verified":
        return ok(about, what)
    if one.state == "drifted":
        do = {
            "served_model": "the provider swaps models: pin a dated id, or another provider",
            "upstream": "pin one upstream (extra_body), or float on purpose",
            "fingerprint": "the server's configuration changed between calls; the report counts it",
        }[one.kind]
        return note(about, what, do, matters=True)
    if "gateway" in one.why:
        return note(about, what, "ask the provider for a key of one channel; results say so", matters=True)
    if one.kind == "served_model":
        return note(about, what, "a dated id as provider.model would be told apart", matters=True)
    return note(about, what)


def _texts(replies: list[Reply]) -> set[str]:
    return {str(reply.message.get("content")) for reply in replies}


def _kinds(texts: set[str]) -> str:
    return "1 text" if len(texts) == 1 else f"{len(texts)} texts"


def _latency(prober: Prober) -> float:
    return statistics.median(row.latency_s for row in prober.ended if row.error is None)
