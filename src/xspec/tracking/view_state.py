"""How the experiment looks in the MLflow UI: its description, and a saved view that leads with the gap.

A view is kept in a tag of the experiment, as the UI's own "share" button does, and named in the address. Columns and
charts are the UI's, so a later MLflow may read it differently; then its plain view is shown.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any

_VIEW = "xspec"

NOTE = """\
Each top-level run is **one execution of a frozen spec** (named by arm and spec id); the runs nested in it are its k
passes over the tasks. **gap_pp** = Mean@k - Pass^k in percentage points, over the tasks with k valid trials. A small
gap may be consistent failure: read it with Mean@k. `simulated: yes` tests the instrument, not an agent.
"""

_GAP_SECTION = "xspec-gap"
_RUNS_SECTION = "xspec-runs"
_TAGS = ("guide", "route", "model", "simulated")


def experiment_tags(ks: Iterable[int]) -> dict[str, str]:
    """Tags of an experiment whose specs have these k: at each k the terms of the gap have names of their own."""
    return {
        "mlflow.note.content": NOTE,
        "mlflow.experimentKind": "custom_model_development",
        f"mlflow.sharedViewState.{_VIEW}": json.dumps(_view(sorted(set(ks)))),
    }


def _bar(metric: str) -> dict[str, Any]:
    return _card("BAR", f"xspec-{metric}", _GAP_SECTION) | {"metricKey": metric, "displayName": metric}


def _card(kind: str, uuid: str, section: str) -> dict[str, Any]:
    return {
        "type": kind,
        "uuid": uuid,
        "metricSectionId": section,
        "runsCountToCompare": 20,
        "deleted": False,
        "isGenerated": False,
    }


def _section(uuid: str, name: str) -> dict[str, Any]:
    return {
        "uuid": uuid,
        "name": name,
        "display": True,
        "isReordered": True,
        "deleted": False,
        "isGenerated": False,
    }


def _axis(metric: str) -> dict[str, str]:
    return {"key": metric, "type": "METRIC"}


def _view(ks: Sequence[int]) -> dict[str, Any]:
    terms = [name for k in ks[:5] for name in (f"mean_at_{k}_pct", f"pass_hat_{k}_pct")]
    of_execution = ["gap_pp", "gap_pp_invalid_as_fail", *terms]
    columns = [*of_execution, "pass_share_pct", "invalid_share_pct", "retry_count", "total_tokens"]
    scatter = _card("SCATTER", "xspec-retries-and-passes", _RUNS_SECTION)
    scatter |= {"xaxis": _axis("retry_count"), "yaxis": _axis("pass_share_pct"), "runsCountToCompare": 500}
    return {
        "selectedColumns": [
            *(f"metrics.`{name}`" for name in columns),
            *(f"tags.`{name}`" for name in _TAGS),
        ],
        "orderByKey": "attributes.start_time",
        "orderByAsc": False,
        "runsHiddenMode": "SHOW_ALL",
        "compareRunCharts": [*map(_bar, [*of_execution, "flip_rate_pct", "invalid_share_pct"]), scatter],
        "compareRunSections": [
            _section(_GAP_SECTION, "The gap and its terms, by execution"),
            _section(_RUNS_SECTION, "Retries and passes, by run (expand the rows)"),
        ],
        "isAccordionReordered": True,
        "autoRefreshEnabled": False,
    }


SHARED_VIEW = f"workflowType=machine_learning&compareRunsMode=CHART&viewStateShareKey={_VIEW}"
"""What an address needs after the `?` to show the view."""
