"""Why a figure has no value. Where the data can't answer, the answer is a reason, never NaN."""

from dataclasses import dataclass
from enum import StrEnum


class Reason(StrEnum):
    """A token for JSON; `sentence` is for people."""

    NO_TASKS = "no_tasks"
    NO_VALID_TRIAL = "no_valid_trial"
    ONE_CLUSTER = "one_cluster"
    FEW_CLUSTERS = "few_clusters"
    NO_SPREAD = "no_spread"
    FEW_DEPARTURES = "few_departures"
    ONE_RUN = "one_run"
    FEW_RUNS = "few_runs"
    SECONDARY = "secondary"
    NO_MARGIN = "no_margin"
    NO_EXPOSURE = "no_exposure"
    NO_PARTING = "no_parting"
    NO_UNEXPOSED_PARTING = "no_unexposed_parting"
    UNSTABLE = "unstable"
    UNREACHABLE = "unreachable"
    TOO_MANY_TASKS = "too_many_tasks"

    @property
    def sentence(self) -> str:
        """The reason in one sentence without a full stop."""
        return _SENTENCES[self]


_SENTENCES = {
    Reason.NO_TASKS: "no task has enough trials",
    Reason.NO_VALID_TRIAL: "an arm has no valid trial at all, hence no score",
    Reason.ONE_CLUSTER: "one cluster of tasks shows no spread between clusters",
    Reason.FEW_CLUSTERS: "fewer than 10 clusters: too few for a p-value",
    Reason.NO_SPREAD: "every task has the same value, so there is no spread to measure uncertainty by",
    Reason.FEW_DEPARTURES: "fewer than 5 clusters depart from the common value, too few to judge the spread by",
    Reason.ONE_RUN: "one run shows nothing about runs differing",
    Reason.FEW_RUNS: "fewer than 3 runs to compare: none can be called an outlier",
    Reason.SECONDARY: "not adjusted: the family of tests is the gap's contrasts",
    Reason.NO_MARGIN: "no equivalence margin was stated",
    Reason.NO_EXPOSURE: "no pair of runs was exposed to such an event while still on one prefix",
    Reason.NO_PARTING: "no pair of runs parted",
    Reason.NO_UNEXPOSED_PARTING: "no pair of runs parted without an event, so there is nothing to compare with",
    Reason.UNSTABLE: "too few such events or partings: many resamples have none",
    Reason.UNREACHABLE: "no effect on these tasks makes so large a difference",
    Reason.TOO_MANY_TASKS: "more tasks than the search looks at",
}


@dataclass(frozen=True, slots=True)
class Figure:
    """A number, or None and the reason why there is none. Exactly one of the two is None."""

    value: float | None
    reason: Reason | None = None

    @classmethod
    def undefined(cls, reason: Reason) -> "Figure":
        """No value, for this reason."""
        return cls(None, reason)
