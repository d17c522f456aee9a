"""The report as one HTML file: no network, styles and drawings inside, readable without scripts or colours."""

import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from xspec.report.gateway import gateway_lines
from xspec.report.goals import GOALS, goal_headings, goal_rows, has_goals
from xspec.report.headline import headline, interval_text, p_number, points
from xspec.report.html_figures import (
    arm_rows,
    comparison_rows,
    divergence_bars,
    effect_rows,
    group_rows,
    run_rows,
)
from xspec.report.html_records import drift_rows, failure_rows, lock_rows, spec_texts
from xspec.report.html_tasks import grid_rows, task_views
from xspec.report.model import Group, Report
from xspec.report.protection import protection_notice
from xspec.report.published import MARK, REFERENCES, SETTING, SOURCE
from xspec.report.sentences import DASH, MINUS, SIMULATED, arm_names, number, sentences

_TEMPLATES = Path(__file__).parent / "templates"


def report_html(report: Report) -> str:
    """The whole page. Everything that a task, a model or a user wrote is escaped."""
    text: str = _template().render(
        report=report,
        groups=[_group(group) for group in report.groups],
        gateways=[(found, list(gateway_lines(found))) for found in report.gateways],
        simulated=SIMULATED,
        references=REFERENCES,
        published=MARK,
        setting=SETTING,
        source=SOURCE,
    )
    return text


def _group(group: Group) -> dict[str, Any]:
    names = arm_names(group)
    return {
        "group": group,
        "names": names,
        "headline": headline(group),
        "remarks": sentences(group),
        "protection": protection_notice(group),
        "arms": arm_rows(group),
        "comparisons": comparison_rows(group),
        "goals": {"head": goal_headings(group), "rows": goal_rows(group), "note": GOALS}
        if has_goals(group)
        else None,
        "effects": effect_rows(group),
        "by_group": group_rows(group),
        "divergence": divergence_bars(group),
        "runs": run_rows(group),
        "failures": failure_rows(group),
        "drift": drift_rows(group),
        "locks": lock_rows(group),
        "specs": spec_texts(group),
        "grid": grid_rows(group),
        "tasks": task_views(group),
    }


@lru_cache(maxsize=1)
def _template() -> Template:
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    filters: dict[str, Callable[..., str]] = {
        "number": number,
        "points": _points,
        "p": p_number,
        "interval": interval_text,
        "percent": _percent,
        "ratio": _ratio,
        "span": _span,
        "marked": _marked,
    }
    environment.filters.update(filters)
    return environment.get_template("report.html")


def _marked(text: str) -> Markup:
    """The escaped text, with what stands between backticks as code."""
    parts = re.split("`([^`]*)`", text)
    return Markup("").join(Markup("<code>{}</code>").format(p) if i % 2 else p for i, p in enumerate(parts))


def _points(value: float | None) -> str:
    return DASH if value is None else points(value)


def _percent(share: float | None) -> str:
    return DASH if share is None else f"{100 * share:.1f}%".replace("-", MINUS)


def _ratio(value: float | None) -> str:
    return DASH if value is None else f"{value:.2f}" if value < 100 else f"{value:.0f}"


def _span(low_high: tuple[float, float] | None, places: int = 2) -> str:
    return DASH if low_high is None else f"{low_high[0]:.{places}f} to {low_high[1]:.{places}f}"
