"""What was held while an arm was measured, in the few words a reader looks for first."""

from typing import Any

from xspec.spec.models import ExperimentSpec


def held(spec: ExperimentSpec) -> dict[str, Any]:
    """Base URLs and models by member, the sampling fields that were sent, and the retry policy."""
    retry = spec.route.retry
    return {
        "mode": spec.route.mode,
        "members": [{"name": m.name, "base_url": _address(m), "model": m.model} for m in spec.route.members],
        "sampling": spec.sampling.model_dump(exclude_none=True),
        "timeout_s": spec.route.timeout_s,
        "max_wait_s": spec.route.max_wait_s,
        "max_attempts": retry.max_attempts,
        "retry_statuses": list(retry.statuses),
        "guide": spec.guide.kind,
    }


def _address(member: Any) -> str:
    """Members that xspec starts itself have no address of their own: their settings are what is held."""
    return str(getattr(member, "base_url", None) or f"{member.kind}://{member.name}")
