"""The agent sections, one an agent kind: what the agent may do, and the digest of the text that tells it how."""

from typing import Annotated, Literal

from pydantic import Field

from xspec.spec.sections import Digest, Name, Seconds, Section


class ToolLoopAgent(Section):
    """An agent that answers with tool calls until it answers with text. `prompt` is the digest of its system text."""

    kind: Literal["tool_loop"]
    version: Annotated[int, Field(ge=1)]
    max_steps: Annotated[int, Field(ge=1, le=1000)]
    tool_timeout_s: Seconds
    prompt: Digest
    tools: tuple[Name, ...] | None = None


class JsonChoiceAgent(Section):
    """An agent for models without native tool calls: each reply is one choice that a JSON schema constrains.

    The schema, sent as `response_format`, follows from the task's tools. The trial ends with a final answer, or
    with the observation of tool call number `max_calls` (null: only with a final answer).
    """

    kind: Literal["json_choice"]
    version: Annotated[int, Field(ge=1)]
    max_steps: Annotated[int, Field(ge=1, le=1000)]
    tool_timeout_s: Seconds
    prompt: Digest
    tools: tuple[Name, ...] | None = None
    max_calls: Annotated[int, Field(ge=1, le=1000)] | None = None


class CodeReactAgent(Section):
    """An agent that acts by blocks of Python, run in the task's world, until it declares the task complete there.

    `tool_timeout_s` is the time limit of one block. Of a block's output the model is shown at most
    `max_output_chars` characters.
    """

    kind: Literal["code_react"]
    version: Annotated[int, Field(ge=1)]
    max_steps: Annotated[int, Field(ge=1, le=1000)]
    tool_timeout_s: Seconds
    max_output_chars: Annotated[int, Field(ge=1)]
    prompt: Digest


class GatewayAgent(Section):
    """No agent of xspec's: another program calls the route through the gateway. Its texts and tools are not frozen.

    `enforce` says what becomes of a request that contradicts the spec: it is brought into line (`fill`), or refused.
    """

    kind: Literal["gateway"]
    version: Annotated[int, Field(ge=1)]
    enforce: Literal["fill", "refuse"]


PlayedAgent = ToolLoopAgent | JsonChoiceAgent | CodeReactAgent
"""The kinds that xspec plays itself."""

AgentSpec = Annotated[PlayedAgent | GatewayAgent, Field(discriminator="kind")]
