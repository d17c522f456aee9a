"""The report as Markdown, for an issue or a pull request: the answer, the arms, the comparisons, the remarks."""

from collections.abc import Iterator, Sequence

from xspec.counted import counted
from xspec.report.gateway import GatewayFigures, gateway_lines
from xspec.report.goals import GOALS, goal_headings, goal_rows, has_goals
from xspec.report.headline import headline, interval_text, p_number, points
from xspec.report.html_figures import arm_rows, comparison_rows, effect_rows
from xspec.report.model import Group, Report
from xspec.report.published import MARK, REFERENCES, SETTING, SOURCE
from xspec.report.sentences import DASH, SIMULATED, number, sentences, span


def report_markdown(report: Report) -> str:
    """Every group, the oldest first."""
    if report.empty:
        return "Nothing stored yet.\n"
    lines = [line for group in report.groups for line in _group(group)]
    lines += [line for found in report.gateways for line in _gateway(found)]
    return "\n".join(lines) + "\n"


def _gateway(found: GatewayFigures) -> Iterator[str]:
    yield f"## Gateway {found.execution_id}"
    yield ""
    if found.simulated:
        yield f"**{SIMULATED}**"
        yield ""
    for line in gateway_lines(found):
        yield f"- {_plain(line)}"
    yield ""


def _group(group: Group) -> Iterator[str]:
    k = group.k
    title = f"{group.benchmark} {group.version} ({group.split}), {counted(len(group.tasks), 'task')}, k = {k}"
    yield f"## {_plain(title)}, {_plain(', '.join(group.models))}"
    yield ""
    if group.simulated:
        yield f"**{SIMULATED}**"
        yield ""
    for sentence in headline(group):
        yield _plain(sentence.text)
        yield ""
    arms = [
        [
            row["name"],
            number(row["mean"].value),
            number(row["pass_hat"].value),
            number(row["pass_at"].value),
            number(row["gap"].value),
            interval_text(row["gap"].interval).removeprefix("95% interval "),
            number(row["gap_as_fail"].value),
            span(row["arm"].chosen),
        ]
        for row in arm_rows(group)
    ]
    references = [
        [
            f"{r.label} ({MARK})",
            number(r.mean_at_k_pct),
            number(r.pass_hat_k_pct),
            DASH,
            number(r.gap_pp),
            DASH,
            DASH,
            DASH,
        ]
        for r in REFERENCES
    ]
    head = [
        "arm",
        f"Mean@{k} %",
        f"Pass^{k} %",
        f"Pass@{k} %",
        "gap pp",
        "95%",
        "gap, invalid = fail",
        "when",
    ]
    yield from _table(head, arms + references)
    yield f"{MARK.capitalize()}: {SETTING}; {SOURCE}."
    yield ""
    if has_goals(group):
        yield from _table(goal_headings(group), goal_rows(group))
        yield GOALS
        yield ""
    compared = [[row["name"], *_cells(row)] for row in effect_rows(group)]
    compared += [[f"{row['b']} against {row['a']}", *_cells(row)] for row in comparison_rows(group)]
    if compared:
        head = [
            "",
            "gap pp",
            "95%",
            "p",
            "p Holm",
            "could see pp",
            f"Mean@{k}",
            "95%",
            "invalid as fail",
            "verdict on the gap",
        ]
        yield from _table(head, compared)
    for remark in sentences(group):
        command = f" `{remark.command}`" if remark.command else ""
        yield f"- {'**!** ' if remark.warning else ''}{_plain(remark.text)}{command}"
    yield ""


def _cells(row: dict[str, object]) -> list[str]:
    metrics = row["metrics"]
    assert isinstance(metrics, list)
    gap, mean = metrics[0], metrics[1]
    return [
        _points(gap["contrast"].difference.value),
        interval_text(gap["contrast"].difference.interval).removeprefix("95% interval "),
        p_number(gap["contrast"].p.value),
        p_number(gap["p_holm"]),
        number(gap["contrast"].mde_pp.value),
        _points(mean["contrast"].difference.value),
        interval_text(mean["contrast"].difference.interval).removeprefix("95% interval "),
        "yes" if row["as_fail"] else "no",
        gap["verdict"],
    ]


def _points(value: float | None) -> str:
    return DASH if value is None else points(value)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(map(_plain, row))} |"
    yield ""


def _plain(text: str) -> str:
    """No markup from a label or a cause."""
    for sign in ("\\", "|", "<", "*", "[", "#"):
        text = text.replace(sign, f"\\{sign}")
    return text
