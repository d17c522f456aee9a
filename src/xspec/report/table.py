"""The report on a terminal: a table for each group of comparable arms, and what must be said below it.

Rich shortens what doesn't fit with an ellipsis, and half a number is worse than none. So the layout is chosen
by measuring: one table, else scores and trials one below the other, else a list for each arm.
"""

from collections.abc import Callable
from io import StringIO
from textwrap import wrap

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from xspec.counted import counted
from xspec.report.gateway_text import print_gateway
from xspec.report.goals import GOALS, goal_columns, has_goals
from xspec.report.headline import headline, p_number, points
from xspec.report.model import Arm, Group, Report
from xspec.report.sentence import Sentence
from xspec.report.sentences import DASH, MINUS, SIMULATED, arm_names, number, sentences, span, tokens_text

_ARM_WIDTH = 14
"""Longer arm labels are folded when space is short; below this they would be unreadable."""

DELTA = "\N{GREEK CAPITAL LETTER DELTA}"
_DOT = "\N{MIDDLE DOT}"
_ASCII = str.maketrans({DASH: "-", DELTA: "diff", MINUS: "-", _DOT: "|"})

Column = tuple[str, Callable[[Arm], str]]


def print_report(report: Report, console: Console) -> None:
    """Print every group, the oldest first, then every gateway. Fits any width; nothing is shortened."""
    for group in report.groups:
        _GroupPrinter(group, console).print()
    for found in report.gateways:
        print_gateway(found, console)


def report_text(report: Report, width: int = 80) -> str:
    """The same without a terminal: plain text, no colour codes."""
    file = StringIO()
    print_report(report, Console(file=file, width=width, color_system=None, force_terminal=False))
    return file.getvalue()


class _GroupPrinter:
    """Prints one group, without markup or highlighting, in ASCII where the output can carry nothing else."""

    def __init__(self, group: Group, console: Console) -> None:
        self._group = group
        self._console = console
        self._names = arm_names(group)
        self._ascii = console.options.ascii_only

    def print(self) -> None:
        self._title()
        for sentence in headline(self._group):
            self._line(sentence.text, "bold yellow" if sentence.warning else "bold")
        self._console.print()
        self._figures()
        self._goals()
        self._comparisons()
        for arm in self._group.arms:
            which = f"{self._names[arm.spec_id]}: {arm.spec_id}, execution {arm.chosen.execution_id}"
            self._line(f"{which}, {span(arm.chosen)}", "dim")
        self._console.print()
        for sentence in sentences(self._group):
            self._sentence(sentence)
        self._console.print()

    def _title(self) -> None:
        group = self._group
        parts = (
            f"{group.benchmark} {group.version} ({group.split})",
            counted(len(group.tasks), "task"),
            f"k = {group.k}",
            f"{'model' if len(group.models) == 1 else 'models'} {', '.join(group.models)}",
            f"agent {group.agent}",
        )
        self._line(f" {_DOT} ".join(parts), "bold")
        if group.simulated:
            self._line(SIMULATED, "bold yellow")
        self._console.print()

    def _figures(self) -> None:
        scores, trials = _scores(self._group.k), _trials()
        self._by_arm(scores + trials, [[scores + trials], [scores, trials]])

    def _goals(self) -> None:
        if has_goals(self._group):
            of_all, by_difficulty = goal_columns(self._group)
            both = of_all + by_difficulty
            self._by_arm(both, [[both], [of_all, by_difficulty]])
            self._line(GOALS)
            self._console.print()

    def _by_arm(self, columns: list[Column], layouts: list[list[list[Column]]]) -> None:
        """The first layout whose tables fit, else a list for each arm."""
        for layout in layouts:
            tables = [self._table(of_table) for of_table in layout]
            if all(map(self._fits, tables)):
                for table in tables:
                    self._console.print(table)
                    self._console.print()
                return
        for arm in self._group.arms:
            self._line(self._names[arm.spec_id], "bold")
            for header, figure in columns:
                self._line(f"{' '.join(header.split())}: {figure(arm)}", indent="  ")
        self._console.print()

    def _comparisons(self) -> None:
        """The gap's contrast of each pair, invalid trials counted as the pair's factors want."""
        statistics, names = self._group.statistics, self._names
        if not statistics.pairs:
            return
        headers = (
            "against",
            f"gap {DELTA}\npp",
            "95%\ninterval",
            "p",
            "p\nHolm",
            "could\nsee pp",
            "inv.\n=fail",
        )
        rows = []
        for pair in statistics.pairs:
            found = statistics.leading(pair, "gap")
            contrast = found.contrast
            interval = contrast.difference.interval
            figures = (
                DASH if contrast.difference.value is None else points(contrast.difference.value),
                DASH if interval is None else f"{points(interval.low)} to {points(interval.high)}",
                p_number(contrast.p.value),
                p_number(found.p_holm.value),
                number(contrast.mde_pp.value),
                "yes" if found.invalid_as_fail else "no",
            )
            rows.append((names[pair.b], names[pair.a], *figures))
        table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
        for i, header in enumerate(("arm", *headers)):
            names_fold = i < 2
            table.add_column(
                self._plain(header),
                justify="left" if names_fold else "right",
                no_wrap=not names_fold,
                overflow="fold",
                min_width=min(max(len(row[i]) for row in rows), _ARM_WIDTH) if names_fold else None,
                vertical="bottom",
            )
        for row in rows:
            table.add_row(*(Text(self._plain(cell)) for cell in row))
        if self._fits(table):
            self._console.print(table)
        else:
            for row in rows:
                self._line(f"{row[0]} against {row[1]}", "bold")
                for header, cell in zip(headers[1:], row[2:], strict=True):
                    self._line(f"{' '.join(header.split())}: {cell}", indent="  ")
        if any(effect.contrast.difference.value is not None for effect in statistics.effects):
            self._line(
                "Averages over both levels of the other factor, as in the first lines, see more than a pair."
            )
        self._console.print()

    def _table(self, columns: list[Column]) -> Table:
        table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
        longest = max(len(name) for name in self._names.values())
        table.add_column("arm", overflow="fold", min_width=min(longest, _ARM_WIDTH), vertical="bottom")
        for header, _ in columns:
            table.add_column(self._plain(header), justify="right", no_wrap=True, vertical="bottom")
        for arm in self._group.arms:
            # Text, not str: a label with brackets is no markup, and a figure is not to be coloured.
            figures = (Text(self._plain(figure(arm))) for _, figure in columns)
            table.add_row(Text(self._names[arm.spec_id]), *figures)
        return table

    def _fits(self, table: Table) -> bool:
        unlimited = self._console.options.update(width=10_000)
        return Measurement.get(self._console, unlimited, table).minimum <= self._console.width

    def _sentence(self, sentence: Sentence) -> None:
        mark, style = ("! ", "yellow") if sentence.warning else ("- ", "")
        self._line(sentence.text, style, first=mark, indent="  ")
        if sentence.command:
            # Left to the terminal to wrap, so that it can be copied whole.
            self._console.print(Text(f"    {sentence.command}", style="bold"), soft_wrap=True)

    def _line(self, text: str, style: str = "", *, first: str | None = None, indent: str = "") -> None:
        lines = wrap(
            self._plain(text),
            self._console.width,
            initial_indent=indent if first is None else first,
            subsequent_indent=indent,
            break_on_hyphens=False,  # ids have hyphens
        )
        self._console.print(Text("\n".join(lines), style=style), soft_wrap=True)

    def _plain(self, text: str) -> str:
        return text.translate(_ASCII) if self._ascii else text


def _scores(k: int) -> list[Column]:
    return [
        (f"Mean@{k}\n%", lambda arm: number(arm.chosen.figures.mean_at_k_pct)),
        (f"Pass^{k}\n%", lambda arm: number(arm.chosen.figures.pass_hat_k_pct)),
        (f"Pass@{k}\n%", lambda arm: number(arm.chosen.figures.pass_at_k_pct)),
        ("gap\npp", lambda arm: number(arm.chosen.figures.gap_pp)),
        ("gap pp,\ninv.=fail", lambda arm: number(arm.chosen.figures.gap_pp_invalid_as_fail)),
        ("flips\n%", lambda arm: number(arm.chosen.figures.flip_rate_pct)),
        (f"best{DASH}worst\nrun %", _best_worst),
    ]


def _trials() -> list[Column]:
    return [
        ("gap\n95%", _gap_interval),
        ("pass", lambda arm: f"{arm.chosen.figures.trials.passed}"),
        ("fail", lambda arm: f"{arm.chosen.figures.trials.failed}"),
        ("invalid", lambda arm: f"{arm.chosen.figures.trials.invalid}"),
        ("missing", lambda arm: f"{arm.chosen.figures.trials.missing}"),
        ("retries", lambda arm: f"{arm.chosen.retry_count:,}"),
        ("tokens", lambda arm: tokens_text(arm.chosen.total_tokens)),
    ]


def _gap_interval(arm: Arm) -> str:
    interval = arm.statistics.estimates.valid_only["gap"].interval
    return DASH if interval is None else f"{number(interval.low)}{DASH}{number(interval.high)}"


def _best_worst(arm: Arm) -> str:
    figures = arm.chosen.figures
    if figures.best_run_pct is None:
        return DASH
    return f"{number(figures.best_run_pct)}{DASH}{number(figures.worst_run_pct)}"
