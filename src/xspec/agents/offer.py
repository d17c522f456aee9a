"""How an agent kind puts a task's tools into its requests."""

from dataclasses import dataclass

from xspec.route.conversation import ResponseFormat, Tools


@dataclass(frozen=True, slots=True)
class Offer:
    """Body fields, and text that follows the agent's prompt in the system message. All of it is pinned."""

    text: str = ""
    tools: Tools | None = None
    response_format: ResponseFormat | None = None
