"""Figures of trials: the difference of each one, and models' errors on A/A tests over time."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping
from typing import Any

import plotly.graph_objects as go

from pipeline.views.dashboard.model_choices import ModelCourse
from pipeline.views.dashboard.throughput import COLOURS
from pipeline.views.report.figures import FONT, moment

OWN_COLOURS = "coloured"
"""Meta of lines that keep their colours: the page's script recolours all others."""

_DASHES = ("solid", "dash")
"""Dashes of lines: with more models than colours, the next models have the same colours dashed."""

_BAND = "rgba(76, 120, 200, 0.16)"


def draw_differences(differences: Mapping[str, float], metric: Mapping[str, Any]) -> go.Figure | None:
    """Draw the difference of each trial, with interval and threshold of the verdict; None without any.

    Args:
        differences: By trial, in the order of time; NaN for a trial that never becomes steady, which gets no
            point.
        metric: Of the verdict's event.
    """
    points = [(n, name, value) for n, (name, value) in enumerate(differences.items(), 1) if value == value]
    if not points:
        return None
    figure = go.Figure()
    figure.add_scatter(
        x=[n for n, _, _ in points],
        y=[100 * value for _, _, value in points],
        customdata=[html.escape(name[:80]) for _, name, _ in points],
        mode="markers",
        marker={"size": 8},
        name="trials",
        hovertemplate="trial %{customdata}<br>%{y:+.3~g} %<extra></extra>",
    )
    worse = -1 if metric["direction"] == "down" else 1
    threshold = 100 * worse * metric["threshold"]
    shown = [100 * value for _, _, value in points] + [0.0, threshold]
    bounds = [100 * bound for bound in (metric["low"], metric["high"]) if bound is not None]
    low, high = min(shown + bounds), max(shown + bounds)
    room = 0.08 * (high - low)
    low, high = low - room, high + room
    if bounds:  # an unbounded side reaches the edge
        ends = (
            low if metric["low"] is None else 100 * metric["low"],
            high if metric["high"] is None else 100 * metric["high"],
        )
        figure.add_shape(
            **{"type": "rect", "xref": "paper", "x0": 0, "x1": 1, "y0": ends[0], "y1": ends[1]},
            **{"fillcolor": _BAND, "line": {"width": 0}, "layer": "below"},
        )
    if metric["difference"] is not None:
        _level(figure, 100 * metric["difference"], "mean", dash=None)
    _level(figure, threshold, "threshold", dash="dash")
    figure.update_layout(**_layout(280), showlegend=False)
    figure.update_xaxes(
        title={"text": "trial, in the order of time"}, rangemode="nonnegative", dtick=_tick(len(differences))
    )
    figure.update_yaxes(title={"text": "difference, %"}, range=[low, high], zeroline=True)
    return figure


def draw_course(course: ModelCourse) -> go.Figure:
    """Draw the false positives of each model on A/A experiments, choice by choice, and the chosen model."""
    figure = go.Figure()
    names = [score.model for score in course.scores]
    names += sorted({score.model for choice in course.choices for score in choice.choice.scores} - set(names))
    for number, name in enumerate(names):
        scored = [
            (choice.time, score)
            for choice in course.choices
            for score in choice.choice.scores
            if score.model == name
        ]
        figure.add_scatter(
            x=[moment(time) for time, _ in scored],
            y=[100 * score.false_positives for _, score in scored],
            name=html.escape(name[:60]),
            mode="lines+markers",
            line={
                "color": COLOURS[number % len(COLOURS)],
                "dash": _DASHES[number // len(COLOURS) % len(_DASHES)],
                "width": 1.6,
            },
            meta=OWN_COLOURS,
            hovertemplate="%{y:.3~g} %",
        )
    chosen = [(choice.time, choice.score) for choice in course.choices if choice.score]
    figure.add_scatter(
        x=[moment(time) for time, _ in chosen],
        y=[100 * score.false_positives for _, score in chosen],
        name="chosen",
        mode="markers",
        marker={"symbol": "circle-open", "size": 14, "color": "#d99a12", "line": {"width": 2.5}},
        meta=OWN_COLOURS,
        hoverinfo="skip",
    )
    _level(figure, 100 * course.of.alpha, "bound", dash="dash")
    figure.update_layout(**_layout(340), hovermode="x unified", legend={"orientation": "h", "y": -0.18})
    figure.update_xaxes(showgrid=True)  # without an axis of its own the page does not colour its grid
    figure.update_yaxes(rangemode="tozero", title={"text": "false positives, %"})
    return figure


def _layout(height: int) -> dict[str, Any]:
    return {
        "height": height,
        "margin": {"l": 56, "r": 12, "t": 12, "b": 44},
        "font": {"family": FONT, "size": 13},
    }


def _level(figure: go.Figure, value: float, name: str, dash: str | None) -> None:
    line: dict[str, Any] = {"width": 1.4, **({"dash": dash} if dash else {})}
    figure.add_shape(type="line", xref="paper", x0=0, x1=1, y0=value, y1=value, line=line)
    figure.add_annotation(
        **{"xref": "paper", "x": 1, "xanchor": "right", "y": value, "yanchor": "bottom", "showarrow": False},
        text=f"{name} {value:+.3g} %" if name != "bound" else f"bound {value:g} %",
    )


def _tick(trials: int) -> int:
    """Return a step of whole trials that leaves at most a dozen numbers."""
    return max(1, math.ceil(trials / 12))
