"""The first sentences of a report: did the guide help, did the route matter, for a reader who knows nothing else.

A 2x2 is answered by its main effects, anything else by each pair of arms that differ in that factor alone. A finding
is claimed by the Holm-adjusted p-value of the gap; without one it says what could have been seen.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from xspec.analysis.contrast import Contrast, Verdict
from xspec.analysis.intervals import Interval
from xspec.analysis.reasons import Figure
from xspec.counted import counted
from xspec.report.model import Arm, Group
from xspec.report.sentence import Sentence
from xspec.report.sentences import DASH, MINUS, arm_names, number
from xspec.report.statistics import Pair


@dataclass(frozen=True, slots=True)
class _Finding:
    """What is known of one factor: the gap's contrast with its adjusted p, and those of Mean@k and Pass^k."""

    gap: Contrast
    p_holm: Figure
    verdict: Verdict
    mean: Contrast
    mean_verdict: Verdict
    always: Contrast
    tasks: int
    where: str


def headline(group: Group) -> list[Sentence]:
    """One to a few sentences, the guide first. Never empty."""
    found = list(_guide(group)) + list(_route(group))
    if found:
        return found
    return [_alone(arm, arm_names(group)[arm.spec_id], group.k) for arm in group.arms]


def points(value: float, places: int = 1) -> str:
    """A difference with its sign: `+3.1`, `0.0`, and with a minus sign below 0."""
    rounded = round(value, places)
    if rounded == 0:
        return f"{0:.{places}f}"
    return f"{'+' if rounded > 0 else MINUS}{abs(rounded):.{places}f}"


def p_text(p: float | None) -> str:
    """`p 0.003`, `p < 0.001`, or what is wanting."""
    if p is None:
        return "no p-value"
    return "p < 0.001" if p < 0.001 else f"p {p:.3f}" if p < 0.1 else f"p {p:.2f}"


def p_number(p: float | None) -> str:
    """For a column: `0.003`, `<0.001`, or a dash."""
    return DASH if p is None else "<0.001" if p < 0.001 else f"{p:.3f}"


def interval_text(interval: Interval | None, *, flip: bool = False) -> str:
    """`95% interval 3.1 to 17.0`; with `flip` the same of the negated difference."""
    if interval is None:
        return "no interval"
    low, high = (-interval.high, -interval.low) if flip else (interval.low, interval.high)
    return f"95% interval {points(low).lstrip('+')} to {points(high).lstrip('+')}"


def _over_both_levels(group: Group, factor: str, *, invalid_as_fail: bool, where: str) -> "_Finding | None":
    """What a factor, `first` or `second`, does over both levels of the other; None without a 2x2 that says it."""
    gap, mean, always = (
        group.statistics.effect(factor, metric, invalid_as_fail=invalid_as_fail)
        for metric in ("gap", "mean_at_k", "pass_hat_k")
    )
    if gap is None or gap.contrast.difference.value is None:
        return None
    assert mean is not None
    assert always is not None
    return _Finding(
        gap.contrast,
        gap.p_holm,
        gap.verdict,
        mean.contrast,
        mean.verdict,
        always.contrast,
        gap.tasks,
        where,
    )


def _guide(group: Group) -> Iterator[Sentence]:
    statistics = group.statistics
    finding = _over_both_levels(group, "first", invalid_as_fail=False, where="over both routes")
    if finding is not None:
        yield _guide_sentence(finding, group.k)
        interaction = statistics.effect("interaction", "gap", invalid_as_fail=False)
        if interaction is not None and interaction.verdict in (Verdict.HIGHER, Verdict.LOWER):
            moved = points(interaction.contrast.difference.value or 0.0)
            yield Sentence(
                f"Its effect depends on the route: it moves the gap by {moved} points more on the floating one "
                f"({interval_text(interaction.contrast.difference.interval)}).",
                warning=True,
            )
        return
    names = arm_names(group)
    for pair in statistics.pairs:
        if pair.guide and not pair.route:
            finding = _of_pair(group, pair, invalid_as_fail=False)
            yield _guide_sentence(finding, group.k, f"{names[pair.b]} against {names[pair.a]}")


def _guide_sentence(finding: _Finding, k: int, pair: str | None = None) -> Sentence:
    where = f" ({pair})" if pair else f" {finding.where}" if finding.where else ""
    value = finding.gap.difference.value
    if value is None or finding.verdict is Verdict.UNDEFINED:
        return Sentence(f"Did the guide help? It can't be said{where}: {_why(finding)}.", warning=True)
    evidence = _evidence(finding, flip=value < 0)
    also = f"{_moved(f'Mean@{k}', finding.mean)}, {_moved(f'Pass^{k}', finding.always)}"
    if finding.verdict is Verdict.LOWER:
        worse = finding.mean_verdict is Verdict.LOWER
        begin = "The guide made the agent steadier but worse" if worse else "The guide helped"
        return Sentence(
            f"{begin}: it narrowed the gap by {number(abs(value))} points{where} ({evidence}). {also}.",
            warning=worse,
        )
    if finding.verdict is Verdict.HIGHER:
        return Sentence(
            f"The guide widened the gap by {number(value)} points{where} ({evidence}). {also}.", warning=True
        )
    if finding.verdict is Verdict.EQUIVALENT:
        return Sentence(
            f"The guide left the gap as it was, within {counted(finding.gap.margin_pp or 0, 'point')}{where}: "
            f"{points(value)} ({_evidence(finding, flip=False)}). {also}."
        )
    more = ""
    if finding.mean_verdict in (Verdict.HIGHER, Verdict.LOWER):
        more = f" Mean@{k} did move (p not adjusted): read the gap with it."
    return Sentence(
        f"Cannot tell whether the guide helped{where}: the gap moved by {points(value)} points "
        f"({_evidence(finding, flip=False)}); {_seen(finding)}. {also}.{more}"
    )


def _route(group: Group) -> Iterator[Sentence]:
    finding = _over_both_levels(group, "second", invalid_as_fail=True, where="")
    if finding is not None:
        yield _route_sentence(finding, group.k, "The floating route", "the fixed one")
        return
    names = arm_names(group)
    for pair in group.statistics.pairs:
        if pair.route and not pair.guide:
            finding = _of_pair(group, pair, invalid_as_fail=True)
            yield _route_sentence(
                finding, group.k, f"The route of {names[pair.b]}", f"that of {names[pair.a]}"
            )


def _route_sentence(finding: _Finding, k: int, subject: str, other: str) -> Sentence:
    value = finding.gap.difference.value
    if value is None or finding.verdict is Verdict.UNDEFINED:
        return Sentence(f"{subject} against {other}: it can't be said, {_why(finding)}.", warning=True)
    how = "invalid counted as failed"
    also = f"{_moved(f'Mean@{k}', finding.mean)}, {_moved(f'Pass^{k}', finding.always)}"
    if finding.verdict in (Verdict.LOWER, Verdict.HIGHER):
        verb = "narrowed" if finding.verdict is Verdict.LOWER else "widened"
        evidence = _evidence(finding, flip=value < 0)
        return Sentence(
            f"{subject} {verb} the gap by {number(abs(value))} points against {other}, {how} ({evidence}). {also}."
        )
    if finding.verdict is Verdict.EQUIVALENT:
        return Sentence(
            f"{subject} left the gap as on {other}, within {counted(finding.gap.margin_pp or 0, 'point')}, {how}: "
            f"{points(value)} ({_evidence(finding, flip=False)}). {also}."
        )
    return Sentence(
        f"Cannot tell {subject[0].lower()}{subject[1:]} from {other}: the gap moved by {points(value)} points, "
        f"{how} ({_evidence(finding, flip=False)}); {_seen(finding)}. {also}."
    )


def _of_pair(group: Group, pair: Pair, *, invalid_as_fail: bool) -> _Finding:
    gap, mean, always = (
        next(
            c
            for c in group.statistics.comparisons
            if (c.a, c.b, c.metric, c.invalid_as_fail) == (pair.a, pair.b, metric, invalid_as_fail)
        )
        for metric in ("gap", "mean_at_k", "pass_hat_k")
    )
    return _Finding(
        gap.contrast, gap.p_holm, gap.verdict, mean.contrast, mean.verdict, always.contrast, gap.tasks, ""
    )


def _evidence(finding: _Finding, *, flip: bool) -> str:
    parts = [interval_text(finding.gap.difference.interval, flip=flip), p_text(finding.gap.p.value)]
    if finding.p_holm.value is not None and finding.p_holm.value != finding.gap.p.value:
        parts.append(p_text(finding.p_holm.value).replace("p ", "Holm ", 1))
    return f"{parts[0]}; {', '.join(parts[1:])}; {counted(finding.tasks, 'task')}"


def _seen(finding: _Finding) -> str:
    if finding.gap.mde_pp.value is None:
        reason = finding.gap.mde_pp.reason
        return f"what it could have seen is unknown: {reason.sentence if reason else 'no spread'}"
    return f"the smallest difference it could well have seen is {number(finding.gap.mde_pp.value)}"


def _why(finding: _Finding) -> str:
    reason = finding.gap.difference.reason or finding.gap.p.reason
    return reason.sentence if reason is not None else "there is no figure"


def _moved(name: str, contrast: Contrast) -> str:
    value = contrast.difference.value
    if value is None:
        return f"{name} unknown"
    interval = contrast.difference.interval
    spread = f" ({points(interval.low)} to {points(interval.high)})" if interval else ""
    return f"{name} {points(value)}{spread}"


def _alone(arm: Arm, name: str, k: int) -> Sentence:
    """An arm by itself: its gap, and what that is."""
    estimate = arm.statistics.estimates.valid_only["gap"]
    if estimate.value is None:
        reason = estimate.reason.sentence if estimate.reason else "no figure"
        return Sentence(f"{name}: no gap, since {reason}.", warning=True)
    figures = arm.chosen.figures
    return Sentence(
        f"{name}: a trial passes {number(figures.mean_at_k_pct)}% of the time, but only "
        f"{number(figures.pass_hat_k_pct)}% of tasks pass all {k} runs: a consistency gap of "
        f"{number(estimate.value)} points ({interval_text(estimate.interval)}; {counted(estimate.tasks, 'task')}). "
        "One arm by itself says nothing about a guide or a route."
    )
