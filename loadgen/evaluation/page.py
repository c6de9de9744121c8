"""A score as one self-contained page: no network, every text from outside escaped."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import plotly.io
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from loadgen.evaluation import words
from loadgen.evaluation.figures import delay_figure, funnel_figure, rates_figure, roc_figure
from loadgen.evaluation.funnel import funnel_lines
from loadgen.evaluation.model import ScoredEvent
from loadgen.evaluation.scoring import Score
from loadgen.evaluation.sweep import SweepCurve
from pipeline.model.clock import to_iso
from pipeline.model.metric_kind import is_gcpu
from pipeline.views import report

LIMIT = 200
"""Rows in a list of a page."""

_PLOTLY = {"displaylogo": False, "responsive": True, "modeBarButtonsToRemove": ["lasso2d", "select2d"]}


def render_score(
    score: Score, *, title: str, curves: Sequence[SweepCurve] = (), runs: SweepCurve | None = None
) -> str:
    """Return the page as HTML.

    Args:
        score: The figures.
        title: Name of the scored run, such as the name of the events file.
        curves: Curves of single statistics.
        runs: The curve of the whole pipeline over a swept setting.
    """
    figures = {"delay": embedded(delay_figure(score), "delay")}
    if curves or runs:
        figures["roc"] = embedded(roc_figure(curves, score, runs), "roc")
    if score.sizes or score.event_sizes:
        sizes = [("recall", score.sizes), ("precision", score.event_sizes)]
        figures["sizes"] = embedded(rates_figure(sizes), "sizes")
    if score.funnel:
        figures["funnel"] = embedded(funnel_figure(score.funnel), "funnel")
    return (
        environment()
        .get_template("page.html")
        .render(
            plotly=Markup(get_plotlyjs()),
            title=title,
            score=score,
            curves=curves,
            runs=runs,
            figures={"roc": None, "sizes": None, **figures},
            wanted=[(_spaced(item.name), item.rows) for item in score.kinds if item.expected],
            unwanted=[(_spaced(item.name), item.rows) for item in score.kinds if not item.expected],
            causes=words.cause_rates(score),
            groups=words.group_rates(score),
            missed=sorted(score.matching.missed, key=lambda row: (-abs(row.delta), row.id)),
            wrong=[item for item in score.matching.judged if item.outcome != "true_positive"],
            lines=funnel_lines(score.funnel) if score.funnel else (),
            limit=LIMIT,
        )
    )


def embedded(figure: go.Figure, name: str) -> Markup:
    """Return a figure as a part of a page that already holds plotly."""
    return Markup(  # noqa: S704  # plotly escapes < > & in its JSON; labels were escaped by figures
        plotly.io.to_html(
            figure, include_plotlyjs=False, full_html=False, div_id=f"figure-{name}", config=_PLOTLY
        )
    )


def environment() -> Environment:
    """Return the templates' environment with the filters that write figures.

    The layout is that of reports, the style one of its own.
    """
    templates = Environment(
        loader=FileSystemLoader([Path(__file__).parent, Path(report.__file__).parent]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Any] = {
        "share": words.share,
        "interval": words.interval,
        "counts": words.counts,
        "hours": words.hours,
        "points": words.points,
        "away": lambda value: f"{words.hours(abs(value))} {'earlier' if value > 0 else 'later'}",
        "change": change,
        "clock": lambda value: to_iso(value)[:16].replace("T", " "),
    }
    templates.filters.update(filters)
    return templates


def change(event: ScoredEvent) -> str:
    """Write an event's change, in per cent of the service's CPU or in the metric's own unit."""
    return f"{event.delta:+.4g}" if not is_gcpu(event.metric_kind) else words.points(event.delta)


def _spaced(name: str) -> str:
    return name.replace("_", " ")
