"""The columns of the tables that hold an execution as a whole: what it was, its figures, its spec's fields."""

import pyarrow as pa  # type: ignore[import-untyped]

from xspec.records.parquet_columns import TEXTS, TIME, column

SUMMARY_LAYOUT = 4
"""Raised when a column or a metric changes; summaries of an older layout are then written again."""

EXECUTIONS = pa.schema(
    [
        column("execution_id", pa.string(), "`ex-…`"),
        column("spec_id", pa.string(), "`xs-…`"),
        column("condition_id", pa.string(), "`xc-…`: equal where the same thing is measured"),
        column("arm", pa.string(), "label of the arm; null if it has none"),
        column("benchmark", pa.string(), "kind of benchmark"),
        column("version", pa.string(), "version of the benchmark"),
        column("split", pa.string(), "part of the benchmark"),
        column("agent", pa.string(), "kind of agent"),
        column("guide", pa.string(), "kind of guide, `none` without one"),
        column("route", pa.string(), "`fixed` or `floating`"),
        column("members", TEXTS, "names of the route's members"),
        column("models", TEXTS, "models asked for, by member"),
        column(
            "simulated",
            pa.bool_(),
            "whether a simulated model answered: then the figures say nothing of an agent",
        ),
        column(
            "protected", pa.bool_(), "whether a licence protects the texts: then they may not be made public"
        ),
        column("k", pa.int32(), "runs of the spec"),
        column("tasks", pa.int32(), "tasks of the spec"),
        column(
            "finished",
            pa.bool_(),
            "whether every trial has an outcome, be it invalid; of a gateway, whether it was closed in order",
        ),
        column(
            "gateway_ended",
            pa.string(),
            "`done`, `failed` (by its command's exit code), `stopped` (by the route) or `interrupted`; null if it was "
            "killed or is still at work, and where there is no gateway",
        ),
        column("stints", pa.int32(), "processes that worked on it"),
        column("began_at", TIME, "when the execution was begun"),
        column("started_at", TIME, "start of its first trial or call"),
        column("ended_at", TIME, "end of its last trial so far, or of the gateway"),
        column("mean_at_k_pct", pa.float64(), "Mean@k in percent, over the tasks with k valid trials"),
        column("pass_hat_k_pct", pa.float64(), "Pass^k in percent, over the same tasks"),
        column("gap_pp", pa.float64(), "their difference in percentage points"),
        column("gap_pp_invalid_as_fail", pa.float64(), "the same with invalid trials counted as failed"),
    ]
)

PARAMS = pa.schema(
    [
        column("execution_id", pa.string(), "`ex-…`"),
        column("name", pa.string(), "path of the field in the spec, `route.retry.max_attempts`"),
        column("value", pa.string(), "as text; the task list as a count and a digest"),
    ]
)

METRICS = pa.schema(
    [
        column("execution_id", pa.string(), "`ex-…`"),
        column("run", pa.int32(), "null for a figure of the whole execution"),
        column("name", pa.string(), "`gap_pp`, `mean_at_5_pct`, …; see below"),
        column("value", pa.float64(), "never NaN: a figure that can't be given has no row"),
    ]
)

SUMMARY_TABLES = {"executions": EXECUTIONS, "params": PARAMS, "metrics": METRICS}
