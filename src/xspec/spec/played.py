"""Specs whose trials xspec plays itself, and those that belong to another program behind the gateway."""

from xspec.errors import UserError
from xspec.spec.agents import GatewayAgent, PlayedAgent
from xspec.spec.models import ExperimentSpec


def played_agent(spec: ExperimentSpec) -> PlayedAgent:
    """The spec's agent. Raises UserError if it is the gateway: what calls it is no part of the spec."""
    if isinstance(spec.agent, GatewayAgent):
        raise UserError(
            f"{spec.id} is a gateway's spec: its calls come from another program, so xspec cannot play or replay it; "
            f"`python -m xspec gateway {spec.id} -- COMMAND` begins another execution of it"
        )
    return spec.agent
