"""The columns of the Parquet files: one schema a table, the same in every stint, also where a column is all null.

Times are UTC without a zone, to the microsecond; durations are seconds. A column that holds JSON says so. The words
beside each column stand in docs/store.md too, which a test compares with this file.
"""

import pyarrow as pa  # type: ignore[import-untyped]

PARQUET_LAYOUT = 2
"""Raised when a column is added, dropped or changes its type: files of an older layout are then written again."""

TIME = pa.timestamp("us")
TEXTS = pa.list_(pa.string())


def column(name: str, kind: pa.DataType, what: str) -> pa.Field:
    """A column with the sentence that documents it."""
    return pa.field(name, kind, metadata={"what": what})


_ORIGIN = [
    column("execution_id", pa.string(), "`ex-…`"),
    column("spec_id", pa.string(), "`xs-…`, the spec that was carried out"),
    column("arm", pa.string(), "label of the arm; null if it has none"),
    column("stint", pa.int32(), "number of the stint, from 1"),
    column("run", pa.int32(), "0 to k-1"),
    column("task", pa.string(), "task id"),
    column("take", pa.int32(), "0 for the first try at this trial, one more each time it is begun again"),
]

TRIALS = pa.schema(
    [
        *_ORIGIN,
        column("cluster", pa.string(), "tasks made from one template share it"),
        column("stratum", pa.string(), "suite or other part of the benchmark"),
        column("difficulty", pa.string(), "where the benchmark gives one"),
        column("outcome", pa.string(), "`pass`, `fail` or `invalid`"),
        column("cause", pa.string(), "why it did not pass, one token; null after a pass"),
        column("ended", pa.string(), "how the agent's loop ended"),
        column("verdict", pa.string(), "JSON: what the benchmark said"),
        column("steps", pa.int32(), "agent turns"),
        column("calls", pa.int32(), "logical model requests"),
        column("attempts", pa.int32(), "HTTP tries of those calls"),
        column("retry_count", pa.int32(), "attempts minus calls"),
        column("prompt_tokens", pa.int64(), "over all attempts; null if no reply said"),
        column("completion_tokens", pa.int64(), "over all attempts; null if no reply said"),
        column("replies_uncounted", pa.int32(), "replies that did not say how many tokens they took"),
        column("waited_s", pa.float64(), "pauses before attempts, added up"),
        column("started_at", TIME, "before the world was opened"),
        column("ended_at", TIME, "after the verdict"),
        column("drift", TEXTS, "what came back other than pinned"),
        column("detail", pa.string(), "one line of explanation, if there is one"),
    ]
)

STEPS = pa.schema(
    [
        *_ORIGIN,
        column("step", pa.int32(), "from 0"),
        column("at", TIME, "when the step was begun"),
        column("request_digest", pa.string(), "`sha256:…` of the request that began it"),
        column("member", pa.string(), "member of the route that answered"),
        column("finish_reason", pa.string(), "as the model's server said"),
        column("refusal", pa.string(), "what the model said instead of an answer, if it refused"),
        column(
            "tools",
            TEXTS,
            "names of the tools or APIs called, in order (`code` for code that called none)",
        ),
        column("failed_actions", pa.int32(), "how many of the actions failed"),
        column(
            "actions",
            pa.string(),
            "JSON list: each action sent to the world, if it failed, and the API calls of its code",
        ),
        column("added", pa.string(), "JSON list: the messages this step added"),
    ]
)

ATTEMPTS = pa.schema(
    [
        *_ORIGIN,
        column("step", pa.int32(), "the step that asked"),
        column("call", pa.int32(), "which request of the step"),
        column("attempt", pa.int32(), "0 for the first try of the call"),
        column("member", pa.string(), "member of the route it went to"),
        column("started_at", TIME, "when it was sent"),
        column("ended_at", TIME, "when its row was written; null if the process was killed before"),
        column(
            "concurrency",
            pa.int32(),
            "attempts under way when it was sent, over all processes that share the key",
        ),
        column("status", pa.int32(), "HTTP status; null if none came"),
        column("error", pa.string(), "null for a usable reply, else one token"),
        column("waited_s", pa.float64(), "pause before this attempt"),
        column("latency_s", pa.float64(), "from sending to the whole reply"),
        column("prompt_tokens", pa.int64(), "null if the provider did not say"),
        column("completion_tokens", pa.int64(), "null if the provider did not say"),
        column("served_model", pa.string(), "null if the provider did not say"),
        column("fingerprint", pa.string(), "null if the provider did not say: unknown, not unchanged"),
        column("upstream", pa.string(), "null if the provider did not say"),
        column("request_ids", pa.string(), "JSON: ids by header name"),
        column("drift", TEXTS, "what came back other than pinned"),
        column("request_digest", pa.string(), "`sha256:…` of the body"),
    ]
)

CALLS = pa.schema(
    [
        *_ORIGIN,
        column("step", pa.int32(), "which of the trial's or conversation's requests"),
        column("call", pa.int32(), "how often the same request had come before"),
        column("started_at", TIME, "when it came"),
        column(
            "by",
            pa.string(),
            'how its trial is known: `path` or `header`, else `order` of conversations; SQL wants it as `"by"`',
        ),
        column("endpoint", pa.string(), "`chat_completions`"),
        column("streamed", pa.bool_(), "whether a stream was asked for"),
        column("again", pa.string(), "null, or the harness's own `retry`, or a `repeat` after an answer"),
        column("ended", pa.string(), "`answered`, `refused`, `failed`, `stopped`, `broken` or `gone`"),
        column("status", pa.int32(), "HTTP status that its caller got; null if none"),
        column("why", pa.string(), "one line of explanation, if there is one"),
        column("latency_s", pa.float64(), "from its coming to its end"),
        column("changes", pa.int32(), "fields sent otherwise than asked, those filled in among them"),
        column(
            "contradicted", TEXTS, "names of the fields that were asked for otherwise than the spec has it"
        ),
        column("observed", TEXTS, "names of the fields that went out as they came"),
        column("asked_digest", pa.string(), "`sha256:…` of the body as it came"),
        column("bytes", pa.int64(), "of that body"),
        column("tools", pa.string(), "`sha256:…` of its tool schemas, a blob; null if it had none"),
        column("others", pa.int32(), "choices beside the one that stands in the step"),
        column("drift", TEXTS, "what came back other than pinned"),
    ]
)

STINT_TABLES = {"trials": TRIALS, "steps": STEPS, "attempts": ATTEMPTS, "calls": CALLS}
