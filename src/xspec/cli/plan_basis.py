"""What a plan goes by: assumed pass rates, or those and the usage of a stored execution."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from xspec.analysis.plan import Usage
from xspec.analysis.rates import BetaRates, RateSource, StoredRates
from xspec.errors import UserError
from xspec.report.execution_record import ExecutionRecord
from xspec.report.load import load_records
from xspec.spec.store import Store

# Mean@k 77.5 and, at k = 5, a gap near the published 24.4.
_ASSUMED = (1.1, 0.32)


@dataclass(frozen=True, slots=True)
class Basis:
    """What a plan goes by: pass rates and what they are, the size at hand, and the usage of a trial if stored."""

    source: RateSource
    words: str
    tasks: int
    k: int
    usage: Usage | None
    simulated: bool


def basis_of(options: Any) -> Basis:
    """By `--from`, `--mean` or neither. Raises UserError."""
    if options.stored and options.mean is not None:
        raise UserError("--from and --mean: give one of them")
    if options.stored:
        return _stored(options.store, options.stored)
    if options.mean is not None:
        if not 0 < options.mean < 100 or not 0.01 <= options.spread <= 1000:
            raise UserError("--mean is between 0 and 100 percent, --spread from 0.01 to 1000")
        rates = BetaRates.from_mean(
            options.mean / 100,
            options.spread,
            tasks_per_cluster=options.cluster_size,
            shared=_shared(options),
        )
        words = f"assumed pass rates, Beta({rates.alpha:.2f}, {rates.beta:.2f})"
    else:
        rates = BetaRates(*_ASSUMED, options.cluster_size, _shared(options))
        words = f"assumed pass rates, Beta({rates.alpha:g}, {rates.beta:g}): Mean@5 77, gap about 24"
    return Basis(rates, words, 92, 5, None, False)


def _shared(options: Any) -> float:
    """Tasks of a cluster correlate by 0.64, as in the calibration."""
    return 0.8 if options.cluster_size > 1 else 0.0


def _stored(path: str, wanted: str) -> Basis:
    record = _record(Store(path, create=False), wanted)
    spec, table = record.spec, record.outcomes()
    clusters = [record.task_info.get(t, {}).get("cluster") or t for t in spec.benchmark.tasks]
    try:
        rates = StoredRates(table, np.array(clusters, dtype=np.str_))
    except ValueError as error:
        raise UserError(f"--from {wanted}: {error}") from None
    trials = record.trials
    usage = Usage.of_trials(
        [t.calls for t in trials], [t.prompt_tokens for t in trials], [t.completion_tokens for t in trials]
    )
    name = f"{record.execution_id}{f' ({record.arm})' if record.arm else ''}"
    return Basis(
        rates,
        f"pass rates and usage of {name}",
        len(spec.benchmark.tasks),
        spec.k,
        usage,
        any(member.kind == "rehearsal" for member in spec.route.members),
    )


def _record(store: Store, wanted: str) -> ExecutionRecord:
    if wanted.startswith("ex-"):
        found = [r for r in load_records(store) if r.execution_id.startswith(wanted)]
    else:
        found = load_records(store, spec_ids=[store.find_spec_id(wanted)])
    if not found:
        raise UserError(
            f"--from {wanted}: no such execution in {store.path}; `python -m xspec report` lists them"
        )
    return next((record for record in found if record.ended_at is not None), found[-1])
