"""Difference of two runs, for the terminal, as JSON, and as a page with plots of the series."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from loadgen.evaluation.difference import Difference, Lone
from loadgen.evaluation.figures import line_figure
from loadgen.evaluation.model import Event
from loadgen.evaluation.page import change, embedded, environment
from loadgen.evaluation.words import hours
from pipeline.backtest.dataset import Dataset
from pipeline.commands.tables import Column, print_table
from pipeline.commands.terminal import print_lines
from pipeline.model import FloatArray
from pipeline.model.clock import to_iso
from pipeline.model.metric_kind import is_gcpu

PLOTS = 60
"""Series drawn on a page for either run."""

_AROUND_S = (4 * 86_400.0, 2 * 86_400.0)
"""What a plot shows before and after the change."""


def difference_to_json(difference: Difference) -> dict[str, Any]:
    """Return a difference as a JSON object."""
    return {
        "same": difference.same,
        "both": len(difference.both),
        "only_a": [_lone_to_json(lone) for lone in difference.only_a],
        "only_b": [_lone_to_json(lone) for lone in difference.only_b],
    }


def print_difference(difference: Difference, names: tuple[str, str]) -> None:
    """Print the events that only one run has, and the number of events in both."""
    for name, lone in zip(names, (difference.only_a, difference.only_b), strict=True):
        print_table(_COLUMNS, lone, title=f"Only in {name}: {len(lone)}")
    print_lines([f"In both: {len(difference.both)}"])


def render_difference(difference: Difference, names: tuple[str, str], dataset: Dataset | None = None) -> str:
    """Return the page as HTML; with the dataset it shows the series of events that only one run has."""
    plots: dict[str, Markup] = {}
    for lone in (difference.only_a, difference.only_b) if dataset else ():
        for row in lone[:PLOTS]:
            figure = event_figure(dataset, row.event) if dataset else None
            if figure is not None:
                plots[row.event.id] = embedded(figure, f"event-{len(plots)}")
    return (
        environment()
        .get_template("comparison.html")
        .render(
            plotly=Markup(get_plotlyjs() if plots else ""),
            difference=difference,
            names=names,
            plots=plots,
            limit=PLOTS,
        )
    )


def event_figure(dataset: Dataset, event: Event) -> go.Figure | None:
    """Draw an event's series around its change; None if the dataset has no data there."""
    if event.service != dataset.service:
        return None
    start, end = event.change_time - _AROUND_S[0], max(event.change_time + _AROUND_S[1], event.detected_time)
    times, values = _series(dataset, event)
    shown = (times >= start) & (times < end)
    if not np.isfinite(values[shown]).any():
        return None
    return line_figure(times[shown], values[shown], event)


def _series(dataset: Dataset, event: Event) -> tuple[FloatArray, FloatArray]:
    if not is_gcpu(event.metric_kind):
        series = [points for points in dataset.metrics if points.metric == event.metric]
        return (series[0].timestamps, series[0].values) if series else (np.empty(0), np.empty(0))
    row = next((i for i, key in enumerate(dataset.series) if key == (event.metric_kind, event.metric)), None)
    times = dataset.start + np.arange(len(dataset.totals), dtype=np.float64) * dataset.window_s
    if row is None:
        return times, np.full(len(times), np.nan)
    empty = np.full(len(times), np.nan)
    return times, np.divide(dataset.samples[row], dataset.totals, out=empty, where=dataset.totals > 0)


def _lone_to_json(lone: Lone) -> dict[str, Any]:
    event = lone.event
    return {
        "id": event.id,
        "service": event.service,
        "workload": event.workload,
        "metric": event.metric,
        "change_time": to_iso(event.change_time),
        "detected_time": to_iso(event.detected_time),
        "delta": event.delta,
        "lost": lone.lost
        and {
            "step": lone.lost.step,
            "statistic": lone.lost.statistic,
            "bound": lone.lost.bound,
            "reason": lone.lost.reason,
        },
    }


def _fate(lone: Lone) -> str:
    lost = lone.lost
    if lost is None:
        return ""
    return f"{lost.step}: {lost.statistic:.3g} against {lost.bound:.3g}"


_COLUMNS: tuple[Column[Lone], ...] = (
    Column("series", lambda row: row.event.metric),
    Column("change time", lambda row: to_iso(row.event.change_time)[:16], str),
    Column("change", lambda row: change(row.event), str),
    Column("delay", lambda row: hours(row.event.detected_time - row.event.change_time), str),
    Column("in the other run", _fate),
)
