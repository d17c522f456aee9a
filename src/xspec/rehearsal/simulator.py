"""From a request to a reply: routing, then behaviour, then faults. No I/O."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import orjson

from xspec.rehearsal.address import COMPLETIONS, TrialAddress, parse_trial
from xspec.rehearsal.analyst import Choices, asks_for_guidelines, choices_asked, guidelines, sample_turns
from xspec.rehearsal.attempts import Attempts
from xspec.rehearsal.behaviour import Turn
from xspec.rehearsal.code import Block, as_reply
from xspec.rehearsal.config import Member, RehearsalConfig
from xspec.rehearsal.draws import token
from xspec.rehearsal.faults import Place
from xspec.rehearsal.guide import coverage_of, system_text, text_of
from xspec.rehearsal.replies import MARK, Completion, Reply, bad_request, error_body, not_found
from xspec.rehearsal.scripts import Call, TaskScript
from xspec.rehearsal.streaming import Stream, events, stream_asked
from xspec.rehearsal.tally import Tally

CURL = "curl"
"""The execution of requests to the plain path, which belong to no trial."""
CANNED = (
    "SIMULATED MODEL: xspec's rehearsal plays the known solutions of the tasks it was started with; "
    "this message is the instruction of none of them."
)


class Asked(NamedTuple):
    """What a reply needs to know of its request: bytes of the body, and whether it is to be streamed."""

    size: int
    stream: Stream

    def reply(
        self, completion: Completion | Choices, headers: tuple[tuple[str, str], ...], delay_s: float = 0.0
    ) -> Reply:
        """The whole reply with status 200."""
        body = completion.body()
        if self.stream == "no":
            return Reply(200, body, headers, delay_s)
        return Reply(200, events(orjson.loads(body), self.stream), headers, delay_s, streamed=True)


class Simulator:
    """Answers requests as the configured members would."""

    def __init__(self, config: RehearsalConfig) -> None:
        self._config = config
        self._by_instruction = {script.instruction.strip(): script for script in config.tasks.values()}
        self._by_model = {member.model: member for member in reversed(list(config.members.values()))}
        # What a guide may name where no tools are offered.
        by_code = (script for script in config.tasks.values() if script.by_code)
        self._apis = frozenset(name for script in by_code for call in script.calls for name in call.names)
        self._attempts = Attempts()
        self.tally = Tally()

    def reply(self, method: str, path: str, body: bytes) -> Reply:
        """The reply to one HTTP request. `path` has no query."""
        trial = parse_trial(path)
        if trial is None and path != f"/v1{COMPLETIONS}":
            reply = self._other(method, path)
            self.tally.other(reply.status)
            return reply
        if method != "POST":
            return self._refused(_not_allowed("POST"), trial)
        request = _parsed(body)
        if isinstance(request, Reply):
            return self._refused(request, trial)
        if trial is None:
            return self._plain_path(request, Asked(len(body), stream_asked(request)))
        return self._trial(trial, request, Asked(len(body), stream_asked(request)))

    def _other(self, method: str, path: str) -> Reply:
        if path == "/stats" or path.endswith("/v1/models"):
            if method not in ("GET", "HEAD"):
                return _not_allowed("GET")
            return Reply(200, orjson.dumps(self.tally.plain() if path == "/stats" else self._models()))
        return not_found(
            "no such path; there are POST /v1/chat/completions, POST /t/<execution>/<member key>/<run>/<task>"
            "/v1/chat/completions, GET /v1/models and GET /stats"
        )

    def _models(self) -> dict[str, Any]:
        models = [{"id": model, "object": "model", "owned_by": MARK[1]} for model in sorted(self._by_model)]
        return {"object": "list", "data": models}

    def _refused(self, reply: Reply, trial: TrialAddress | None) -> Reply:
        self.tally.request(reply.status, trial)
        return reply

    def _trial(self, trial: TrialAddress, request: dict[str, Any], asked: Asked) -> Reply:
        member, script = self._config.members.get(trial.member), self._config.tasks.get(trial.task)
        if member is None:
            return self._refused(not_found(f"no member has the key {trial.member}"), trial)
        if script is None:
            return self._refused(not_found(f"no solution of the task {trial.task} is known"), trial)
        if request["model"] != member.model:
            message = f"member {trial.member} serves the model {member.model}, not the requested one"
            return self._refused(not_found(message, "model_not_found"), trial)
        return self._played(trial, member, script, request, asked)

    def _plain_path(self, request: dict[str, Any], asked: Asked) -> Reply:
        """A request from outside xspec: its first user message tells the task, its model the member."""
        users = (m for m in request["messages"] if isinstance(m, dict) and m.get("role") == "user")
        script = self._by_instruction.get(text_of(next(users, {})).strip())
        member = self._by_model.get(request["model"])
        if script is not None and member is not None:
            trial = TrialAddress(CURL, member.key, 0, script.task)
            return self._played(trial, member, script, request, asked)
        self.tally.request(200, None)
        size = asked.size
        completion = Completion(f"chatcmpl-{token(CURL, size)}", request["model"], size, CANNED)
        return asked.reply(completion, (("x-request-id", f"req_{token(CURL, 'request', size)}"), MARK))

    def _played(
        self, trial: TrialAddress, member: Member, script: TaskScript, request: dict[str, Any], asked: Asked
    ) -> Reply:
        messages, tools = request["messages"], _tool_names(request.get("tools"))
        coverage = coverage_of(system_text(messages), self._apis if script.by_code else tools)
        n, prompt = choices_asked(request), asks_for_guidelines(messages)
        if prompt is not None:
            turns = [Turn("answer", 0, text=guidelines(prompt, trial.task))] * n
        elif n > 1:
            where = (trial.execution, trial.run)
            turns = sample_turns(member.player, script, messages, where, coverage, tools, n)
        else:
            turns = [member.player.turn(script, messages, trial.execution, trial.run, coverage)]
        # Whoever withholds the tool gets a model that cannot go on, not one that calls it all the same.
        unable = "" if trial.execution != CURL else CANNED
        turns = [
            Turn("give_up", turn.step, text=unable)
            if isinstance(turn.call, Call) and turn.call.name not in tools
            else turn
            for turn in turns
        ]
        step = turns[0].step
        attempt = self._attempts.next(trial.execution, trial.run, trial.task, step)
        return self._with_faults(
            Place(trial.execution, trial.run, trial.task, step, attempt), trial, member, turns, asked
        )

    def _with_faults(
        self, place: Place, trial: TrialAddress, member: Member, turns: Sequence[Turn], asked: Asked
    ) -> Reply:
        dice, faults = member.dice, member.dice.faults
        request_id = token(member.key, *_parts(place), "request")
        headers = (("x-request-id", f"req_{request_id}"), MARK)
        fault = dice.fault(place)
        if fault == "too_many_requests":
            self.tally.request(429, trial)
            return Reply(429, _RATE_LIMITED, (*_retry_after(faults.retry_after_s), *headers))
        if fault == "server_error":
            status = dice.server_error(place)
            self.tally.request(status, trial)
            return Reply(status, _OVERLOADED, headers)
        if fault == "reset":
            self.tally.request("reset", trial)
            return Reply(0, b"", ending="reset")

        served = member.model if fault != "other_model" else f"{member.model}-drifted"
        completion = _written(turns, place, member, served, asked.size)
        if fault == "truncated_json":
            whole = asked.reply(completion, headers)
            cut, early = dice.cut(len(whole.body), place), dice.closes_early(place)
            self.tally.request("closed_early" if early else "truncated", trial)
            if early:
                return replace(whole, ending="close_early", sent=cut)
            return replace(whole, body=whole.body[:cut])
        if fault == "stall":
            self.tally.request("stall", trial)
            return asked.reply(completion, headers, faults.stall_s)
        self.tally.request(200, trial)
        if fault == "other_model":
            self.tally.fault("other_model")
        if isinstance(completion, Completion) and _garbled(turns[0], completion):
            self.tally.fault("garbled_arguments")
        self._attempts.answered(trial.execution, trial.run, trial.task)
        return asked.reply(completion, headers, faults.latency_s)


_RATE_LIMITED = error_body("Rate limit reached (simulated).", "rate_limit_error", "rate_limit_exceeded")
_OVERLOADED = error_body("The server had an error (simulated).", "server_error", "server_error")


def _written(
    turns: Sequence[Turn], place: Place, member: Member, served: str, size: int
) -> Completion | Choices:
    if len(turns) == 1:
        return _completion(turns[0], place, member, served, size)
    return Choices(tuple(_choice(turn, i, place, member, served, size) for i, turn in enumerate(turns)))


def _choice(turn: Turn, number: int, place: Place, member: Member, served: str, size: int) -> Completion:
    """One of several choices: always whole, since a garbled one would look like another decision."""
    completion_id = f"chatcmpl-{token(member.key, *_parts(place), 'completion')}"
    if isinstance(turn.call, Block):
        return Completion(completion_id, served, size, as_reply(turn.call.text))
    if turn.call is None:
        return Completion(completion_id, served, size, turn.text)
    call_id = f"call_{token(place.execution, place.run, place.task, place.step, number)}"
    return Completion(completion_id, served, size, tool=(call_id, turn.call.name, turn.call.text))


def _completion(turn: Turn, place: Place, member: Member, served: str, size: int) -> Completion:
    completion_id = f"chatcmpl-{token(member.key, *_parts(place), 'completion')}"
    if turn.call is None:
        return Completion(completion_id, served, size, turn.text)
    if isinstance(turn.call, Block):
        # Giving up is no call of the solution: garbled, it might be thought better of, and the trial pass.
        given_up = turn.purpose == "give_up"
        code = turn.call.text if given_up else member.dice.code(turn.call.text, place)
        return Completion(completion_id, served, size, as_reply(code))
    # The call's id stands in later requests, so neither member nor attempt may change it.
    call_id = f"call_{token(place.execution, place.run, place.task, place.step)}"
    arguments = member.dice.arguments(turn.call.text, place)
    return Completion(completion_id, served, size, tool=(call_id, turn.call.name, arguments))


def _garbled(turn: Turn, completion: Completion) -> bool:
    """Whether the call arrives otherwise than it was meant."""
    if isinstance(turn.call, Block):
        return completion.text != as_reply(turn.call.text)
    return turn.call is not None and completion.tool is not None and completion.tool[2] != turn.call.text


def _parts(place: Place) -> tuple[str | int, ...]:
    return (place.execution, place.run, place.task, place.step, place.attempt)


def _retry_after(seconds: float) -> tuple[tuple[str, str], ...]:
    """Retry-After in seconds, with a fraction if there is one, and in the milliseconds that some prefer."""
    return (("retry-after", f"{seconds:g}"), ("retry-after-ms", f"{seconds * 1000:g}"))


def _not_allowed(allowed: str) -> Reply:
    body = error_body(f"this path takes {allowed}", "invalid_request_error")
    return Reply(405, body, (("allow", allowed),))


def _parsed(body: bytes) -> dict[str, Any] | Reply:
    """The request, of which `messages` is a list and `model` a text; or why it is none."""
    try:
        request = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        return bad_request(f"the body is not JSON: {error}")
    if not isinstance(request, dict):
        return bad_request("the body is not a JSON object")
    if not isinstance(request.get("messages"), list) or not request["messages"]:
        return bad_request("messages is missing, empty or not a list")
    if not isinstance(request.get("model"), str):
        return bad_request("model is missing or not a text")
    return request


def _tool_names(tools: Any) -> tuple[str, ...]:
    offered = tools if isinstance(tools, list) else ()
    functions = [tool.get("function") for tool in offered if isinstance(tool, dict)]
    names = [function.get("name") for function in functions if isinstance(function, dict)]
    return tuple(name for name in names if isinstance(name, str))
