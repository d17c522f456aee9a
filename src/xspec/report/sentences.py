"""What a reader must know beside the figures, in plain sentences. The table and any other view print them."""

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import combinations

from xspec.counted import counted
from xspec.report.checked import attributed, counts, differ, outlier_runs
from xspec.report.guide_scope import scope_mark, scope_sentence, scopes_apart
from xspec.report.model import Arm, ExecutionFigures, Group
from xspec.report.sentence import Sentence, some

SIMULATED = "SIMULATED MODEL: no real model was called; these figures test the instrument, not an agent."
DASH = "\N{EN DASH}"
MINUS = "\N{MINUS SIGN}"


def nothing_stored(store: str) -> str:
    """The friendly answer of a report over an empty store."""
    return (
        f"Nothing stored yet in {store}. `make run` rehearses four arms, with and without a guide, on a "
        "fixed and a floating route, with a simulated model and prints this report; `python -m xspec` "
        "executes the experiment in conf/config.yaml."
    )


def arm_names(group: Group) -> dict[str, str]:
    """Spec id → the arm's label with the scope of its guide, and the start of the spec id where two are alike."""
    labels = {arm.spec_id: arm.label + scope_mark(arm.scope) for arm in group.arms}
    shown = list(labels.values())
    return {
        spec_id: label if shown.count(label) == 1 else f"{label} ({spec_id[:9]})"
        for spec_id, label in labels.items()
    }


def sentences(group: Group) -> list[Sentence]:
    """Everything to be said below a group's table, what is wrong first, the definition of the gap last."""
    names = arm_names(group)
    found: list[Sentence] = []
    for arm in group.arms:
        found += _unfinished(arm, names[arm.spec_id])
    for arm in group.arms:
        found += _no_score(arm, names[arm.spec_id], group.k)
    for arm in group.arms:
        found += _invalid(arm, names[arm.spec_id])
        found += _with_drift(arm, names[arm.spec_id], group.k)
    for arm in group.arms:
        found += _left_out(arm, names[arm.spec_id], group.k)
    found += scopes_apart(group, names)
    for arm in group.arms:
        found += scope_sentence(arm, names[arm.spec_id])
    found += differ(group, names)
    for arm in group.arms:
        found += counts(arm, names[arm.spec_id])
        found += outlier_runs(arm, names[arm.spec_id])
        found += attributed(arm, names[arm.spec_id])
    found += _different_tasks(group)
    found += _routes_differ(group)
    found += _apart_in_time(group, names)
    for arm in group.arms:
        found += _lock_changes(arm, names[arm.spec_id])
        found += _uncounted(arm, names[arm.spec_id])
        found += _lock_notes(arm, names[arm.spec_id])
        found += _verified(arm, names[arm.spec_id])
        found += _replayed(arm, names[arm.spec_id])
        found += _other_executions(arm, names[arm.spec_id], group.k)
    if sum(arm.simulated for arm in group.arms) not in (0, len(group.arms)):
        simulated = ", ".join(names[arm.spec_id] for arm in group.arms if arm.simulated)
        found.append(Sentence(f"Simulated: {simulated}.", warning=True))
    found.append(Sentence(_definition(group.k)))
    return found


def span(execution: ExecutionFigures) -> str:
    """`2026-03-01 10:02 to 10:41 UTC`, from the first trial's start to the last one's end."""
    start = datetime.fromtimestamp(execution.started_at, UTC)
    if execution.ended_at is None:
        return f"{start:%Y-%m-%d %H:%M} UTC"
    end = datetime.fromtimestamp(execution.ended_at, UTC)
    until = f"{end:%H:%M}" if start.date() == end.date() else f"{end:%Y-%m-%d %H:%M}"
    return f"{start:%Y-%m-%d %H:%M} to {until} UTC"


def number(value: float | None) -> str:
    """One decimal, or a dash where nothing can be said."""
    return DASH if value is None else f"{value:.1f}"


def _definition(k: int) -> str:
    text = (
        f"Gap = Mean@{k} {MINUS} Pass^{k} in percentage points, both over the same tasks, those with "
        f"{counted(k, 'valid trial')}."
    )
    if k == 1:
        return f"{text} At k = 1 it is 0 by definition and says nothing about consistency."
    return (
        f"{text} A small gap may be consistent failure: read it with Mean@{k}. "
        "Best and worst run drift apart as k grows."
    )


def _unfinished(arm: Arm, name: str) -> Iterator[Sentence]:
    for execution in arm.executions:
        trials = execution.figures.trials
        if execution.finished:
            continue
        which = name if execution.chosen else f"{name}, execution {execution.execution_id}"
        text = f"{which}: unfinished, {trials.missing} of {counted(trials.total, 'trial')} missing."
        if execution.continue_with:
            yield Sentence(f"{text} Go on with", warning=True, command=execution.continue_with)
        else:
            hint = "Go on with the command that began it: `python -m xspec` with the same overrides."
            yield Sentence(f"{text} {hint}", warning=True)


def _no_score(arm: Arm, name: str, k: int) -> Iterator[Sentence]:
    figures = arm.chosen.figures
    if figures.trials.valid == 0:
        yield Sentence(
            f"{name}: no valid trial, so no score. Look at the route before the model.", warning=True
        )
    elif not figures.complete:
        missing = f"no task has {counted(k, 'valid trial')} yet, so no Mean@{k}, Pass^{k} or gap"
        yield Sentence(f"{name}: {missing}.", warning=True)


def _invalid(arm: Arm, name: str) -> Iterator[Sentence]:
    figures, trials = arm.chosen.figures, arm.chosen.figures.trials
    if trials.invalid == 0:
        return
    carried_out = trials.total - trials.missing
    causes = ", ".join(f"{count} {cause}" for cause, count in arm.chosen.invalid_causes)
    share = f"{100 * trials.invalid / carried_out:.1f}% of trials invalid"
    text = f"{name}: {share} ({trials.invalid} of {carried_out}: {causes})."
    if figures.gap_pp_bounds is not None:
        low, high = figures.gap_pp_bounds
        text += f" Whatever their verdicts would have been, the gap lies between {low:.1f} and {high:.1f} pp."
    yield Sentence(text + " `--retry-invalid` runs them again.", warning=True)


def _with_drift(arm: Arm, name: str, k: int) -> Iterator[Sentence]:
    figures = arm.chosen.with_drift
    if figures is not None:
        yield Sentence(
            f"{name}: with drift-invalidated trials counted by their verdicts: "
            f"Mean@{k} {number(figures.mean_at_k_pct)}, Pass^{k} {number(figures.pass_hat_k_pct)}, "
            f"gap {number(figures.gap_pp)} pp."
        )


def _verified(arm: Arm, name: str) -> Iterator[Sentence]:
    """What the replies prove about where they came from. Simulated members prove nothing worth a line."""
    found = arm.chosen.verifications
    if not found or (arm.simulated and all(one.state != "drifted" for one in found)):
        return
    members = dict.fromkeys(one.member for one in found)
    parts = []
    for member in members:
        own = "; ".join(str(one) for one in found if one.member == member)
        parts.append(f"member {member}: {own}" if len(members) > 1 else own)
    warning = any(
        one.state == "drifted" or one.kind == "served_model" for one in found if one.state != "verified"
    )
    yield Sentence(f"{name}: {'. '.join(parts)}.", warning=warning)


def _left_out(arm: Arm, name: str, k: int) -> Iterator[Sentence]:
    left_out = arm.chosen.incomplete_tasks
    if not left_out or not arm.chosen.figures.complete:
        return
    total = arm.chosen.figures.tasks
    yield Sentence(
        f"{name}: {len(left_out)} of {total} tasks left out for want of {counted(k, 'valid trial')}: "
        f"{some(left_out)}."
    )


def _different_tasks(group: Group) -> Iterator[Sentence]:
    complete = [frozenset(arm.chosen.figures.complete) for arm in group.arms if arm.chosen.figures.complete]
    if len(set(complete)) > 1:
        shared = f"{len(frozenset.intersection(*complete))} of {len(group.tasks)}"
        yield Sentence(
            f"The arms' figures are not over the same tasks: {shared} are complete in all arms with a score.",
            warning=True,
        )


def _routes_differ(group: Group) -> Iterator[Sentence]:
    """Whether a trial turns invalid is an effect of the route: "valid only" would condition on it."""
    if len({arm.mode for arm in group.arms}) > 1 and any(
        arm.chosen.figures.trials.invalid for arm in group.arms
    ):
        yield Sentence("Compare routes by the gap with invalid counted as failed.", warning=True)


def _apart_in_time(group: Group, names: dict[str, str]) -> Iterator[Sentence]:
    apart = [
        f"{names[one.spec_id]} and {names[other.spec_id]}"
        for one, other in combinations(group.arms, 2)
        if not _overlap(one.chosen, other.chosen)
    ]
    if apart:
        yield Sentence(
            f"Carried out at different times: {some(apart, 'pair')}. "
            "A provider that changed in between would look like an effect of the arm.",
            warning=True,
        )


def _overlap(one: ExecutionFigures, other: ExecutionFigures) -> bool:
    first, second = sorted((one, other), key=lambda execution: execution.started_at)
    return second.started_at <= (first.ended_at if first.ended_at is not None else first.started_at)


def _lock_changes(arm: Arm, name: str) -> Iterator[Sentence]:
    if arm.chosen.lock_changes:
        yield Sentence(
            f"{name}: resumed under another lock: {'; '.join(arm.chosen.lock_changes)}.", warning=True
        )


def tokens_text(tokens: int | None) -> str:
    """A number of tokens; `unknown` where no reply said."""
    return "unknown" if tokens is None else f"{tokens:,}"


def _uncounted(arm: Arm, name: str) -> Iterator[Sentence]:
    silent, replies = arm.chosen.uncounted, arm.chosen.replies
    if 0 < silent < replies:
        yield Sentence(
            f"{name}: {silent:,} of {counted(replies, 'reply')} did not say how many tokens they took."
        )


def _lock_notes(arm: Arm, name: str) -> Iterator[Sentence]:
    for note in arm.chosen.lock_notes:
        yield Sentence(f"{name}: {note}.", warning=True)


def _replayed(arm: Arm, name: str) -> Iterator[Sentence]:
    if arm.chosen.replayed is None:
        return
    identical, trials = arm.chosen.replayed
    share = f"{name}: {identical} of {counted(trials, 'trial')} replayed identically"
    if identical == trials:
        yield Sentence(f"{share}; what varies between runs is the model and its route.")
    else:
        yield Sentence(f"{share}: the benchmark's own worlds or verdicts vary, and add noise.", warning=True)


def _other_executions(arm: Arm, name: str, k: int) -> Iterator[Sentence]:
    others = [execution for execution in arm.executions if not execution.chosen]
    if not others:
        return
    figures = [
        f"{e.execution_id} Mean@{k} {number(e.figures.mean_at_k_pct)}, "
        f"Pass^{k} {number(e.figures.pass_hat_k_pct)}, gap {number(e.figures.gap_pp)} pp"
        for e in others
    ]
    which = "first finished" if arm.chosen.finished else "newest"
    yield Sentence(
        f"{name}: {len(arm.executions)} executions; the table shows the {which} one, "
        f"{arm.chosen.execution_id}. Besides it: {some(figures, 'execution', '; ')}."
    )
