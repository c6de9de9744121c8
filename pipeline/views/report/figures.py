"""The page's plots, as plotly figures. Every text from outside is escaped: plotly reads HTML in labels."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

import numpy as np
import plotly.graph_objects as go

from pipeline.model import FloatArray
from pipeline.model.frames import name_parts
from pipeline.views.report.flame import Icicle
from pipeline.views.report.windows import DrawnSeries, ScanWindows

When = Literal["before", "after", "alone"]

INK = "#1c2733"
MUTED = "#5b6b7b"
LINE = "#2457a6"
CHANGE = "#b3261e"
GRID = "#e6eaef"
HIGHLIGHT = "#f2b134"
NEUTRAL = "#dfe5ec"
ANALYSIS = "rgba(242, 177, 52, 0.20)"
EXTENDED = "rgba(36, 87, 166, 0.10)"
INTERVAL = "rgba(179, 38, 30, 0.18)"
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"

DELTA_SCALE = [[0.0, "#2f6fb5"], [0.5, "#eef1f4"], [1.0, "#c8372d"]]
"""Blue for shares that fell, red for shares that rose: distinct with every common colour blindness."""

SMALLEST_COLOUR_RANGE = 0.005
"""Smallest end of the scale: shifts of less than half a point of gCPU never look dramatic."""

_HOVER = (
    "<b>%{customdata[0]}</b><br>before %{customdata[1]}<br>after %{customdata[2]}%{customdata[3]}"
    "<extra></extra>"
)
_HOVER_ALONE = "<b>%{customdata[0]}</b><br>%{customdata[2]}<extra></extra>"

_SCALE_HEIGHT = 44
_SCALE = {
    **{"orientation": "h", "x": 0.5, "xanchor": "center", "y": 0.0, "yanchor": "top", "ypad": 6},
    **{"len": 0.5, "thickness": 10, "ticksuffix": " pt"},
}
"""Scale of colours below a graph: beside it, the graph would be narrower than the one before the change."""

_ROW_HEIGHT = 26
_LONGEST_LABEL = 60


def series_figure(
    line: DrawnSeries,
    windows: ScanWindows,
    change_time: float,
    before: float,
    after: float,
    *,
    interval: tuple[float, float] | None = None,
) -> go.Figure:
    """Draw a series with its scan's windows shaded, the change point, and the levels on both sides.

    The interval of the change time is a band around it.
    """
    scale = 100.0 if line.ratio else 1.0
    unit = " %" if line.ratio else ""
    levels = ((before, windows.start, change_time), (after, change_time, windows.end))
    shapes = [_level(level * scale, start, end) for level, start, end in levels]
    shades = _shades(windows)
    if interval:
        shades.append(_band(*interval, INTERVAL))
    # Set all at once: each call that adds to a figure validates it anew, which is slower than drawing.
    return go.Figure(
        go.Scatter(
            x=middles(line.times, windows),
            y=(line.values * scale).tolist(),
            mode="lines+markers",
            line={"color": LINE, "width": 1.6},
            marker={"size": 4.5},
            connectgaps=False,
            hovertemplate="%{x|%H:%M:%S}<br>%{y:.3~g}" + unit + "<extra></extra>",
        ),
        {
            **_layout(height=340),
            "shapes": [*shades, *shapes, _change(change_time)],
            "annotations": [*_names(windows), _change_name(change_time)],
            "xaxis": {
                "gridcolor": GRID,
                "title": {"text": "time (UTC)"},
                "linecolor": MUTED,
                "ticks": "outside",
            },
            "yaxis": {
                "gridcolor": GRID,
                "title": {"text": "share of the service's CPU" if line.ratio else "value"},
                "ticksuffix": unit,
                "rangemode": "tozero",
                "zerolinecolor": MUTED,
            },
        },
    )


@dataclass(frozen=True, slots=True)
class Trace:
    """One of several lines of a figure.

    Args:
        name: In the legend.
        values: (points,) NaN where nothing is drawn.
        colour: As ``COLOURS`` names it.
        dash: As plotly names it; empty: a solid line.
    """

    name: str
    values: FloatArray
    colour: str
    dash: str = ""


COLOURS = {"--ink": INK, "--accent": LINE, "--seen": "#8a5a00"}
"""Colours of lines by name: a page with other colours replaces them by name."""


def lines_figure(times: FloatArray, traces: Sequence[Trace], *, change_time: float, unit: str) -> go.Figure:
    """Draw several lines over time, with a legend and the change point.

    Args:
        times: (points,) epoch seconds.
        traces: Lines with as many values.
        change_time: When the change was, epoch seconds.
        unit: Of the values, beside the axis.
    """
    moments = [moment(time) for time in times.tolist()]
    layout = _layout(height=300)
    legend = {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"}
    axis = {"gridcolor": GRID, "linecolor": MUTED, "ticks": "outside"}
    return go.Figure(
        [
            go.Scatter(
                x=moments,
                y=trace.values.tolist(),
                mode="lines",
                name=_escaped(trace.name, _LONGEST_LABEL),
                meta=trace.colour,
                line={"color": COLOURS[trace.colour], "width": 1.6, "dash": trace.dash or "solid"},
                connectgaps=False,
                hovertemplate="%{x|%H:%M:%S}<br>%{y:.3~g}",
            )
            for trace in traces
        ],
        {
            **layout,
            "margin": {"l": 64, "r": 16, "t": 44, "b": 40},
            "showlegend": True,
            "legend": legend,
            "shapes": [_change(change_time)],
            "xaxis": axis,
            "yaxis": {"gridcolor": GRID, "zerolinecolor": MUTED, "title": {"text": html.escape(unit)}},
        },
    )


def icicle_figure(tree: Icicle, service: str, subroutine: str, when: When) -> go.Figure:
    """Draw a flame graph growing downwards: ``before``, ``after``, coloured by the shift, or one ``alone``.

    ``subroutine`` is marked wherever it stands. Graphs before and after are equally wide.
    """
    values = tree.before if when == "before" else tree.after
    shown = [node for node in range(len(tree.paths)) if values[node] > 0 or node == 0]
    labels = tree.labels
    moved = tree.after - tree.before
    delta = np.where(np.abs(moved) < tree.noise, 0.0, moved)
    figure = go.Figure(
        go.Icicle(
            ids=[str(node) for node in shown],
            labels=[_escaped(_short(labels[node]) or service, _LONGEST_LABEL) for node in shown],
            parents=["" if tree.parents[node] < 0 else str(tree.parents[node]) for node in shown],
            values=_nested(tree, values)[shown].tolist(),
            branchvalues="total",
            sort=False,
            tiling={"orientation": "v", "pad": 1},
            leaf={"opacity": 1.0},
            pathbar={"visible": True, "thickness": 22},
            textfont={"size": 12},
            marker=_colours(labels, delta, shown, subroutine, when),
            customdata=[
                [
                    _escaped(labels[n] or service, 300),
                    _percent(tree.before[n]),
                    _percent(tree.after[n]),
                    "<br>within noise" if abs(moved[n]) < tree.noise[n] else "",
                ]
                for n in shown
            ],
            hovertemplate=_HOVER_ALONE if when == "alone" else _HOVER,
        )
    )
    depth = max((len(tree.paths[node]) for node in shown), default=0) + 1
    scale = _SCALE_HEIGHT if when == "after" else 0
    figure.update_layout(**_layout(height=max(180, min(900, depth * _ROW_HEIGHT + 60)) + scale))
    figure.update_layout(
        margin={"l": 4, "r": 4, "t": 26, "b": 4 + scale}, uniformtext={"minsize": 11, "mode": "hide"}
    )
    return figure


def colour_range(delta: FloatArray) -> float:
    """Return the shift, in gCPU, at which the colour scale ends on both sides."""
    return max(SMALLEST_COLOUR_RANGE, float(np.abs(delta).max(initial=0.0)))


def _colours(
    labels: tuple[str, ...], delta: FloatArray, shown: list[int], subroutine: str, when: When
) -> dict[str, object]:
    marked = [labels[node] == subroutine for node in shown]
    line = {
        "color": [INK if mark else "#ffffff" for mark in marked],
        "width": [2.5 if mark else 1.0 for mark in marked],
    }
    if when != "after":
        return {"colors": [HIGHLIGHT if mark else NEUTRAL for mark in marked], "line": line}
    bound = colour_range(delta) * 100
    return {
        "colors": (delta[shown] * 100).tolist(),
        "colorscale": DELTA_SCALE,
        "cmin": -bound,
        "cmax": bound,
        "showscale": True,
        "colorbar": _SCALE,
        "line": line,
    }


def _nested(tree: Icicle, values: FloatArray) -> FloatArray:
    """Return values that no node's children exceed: plotly draws nothing otherwise."""
    nested = values.copy()
    for node in range(len(tree.parents) - 1, 0, -1):  # children come after their parents
        if values[node] <= 0:
            nested[node] = 0.0
    sums = np.zeros(len(nested))
    for node in range(len(tree.parents) - 1, 0, -1):
        nested[node] = max(nested[node], sums[node])
        sums[tree.parents[node]] += nested[node]
    nested[0] = max(nested[0], sums[0])
    return nested


Part = dict[str, object]
"""A shape or a text of a layout."""


def _spans(windows: ScanWindows) -> list[tuple[str, float, float, str]]:
    spans = [
        ("historical", windows.start, windows.analysis_start, "rgba(0, 0, 0, 0)"),
        ("analysis", windows.analysis_start, windows.analysis_end, ANALYSIS),
        ("extended", windows.analysis_end, windows.end, EXTENDED),
    ]
    return [span for span in spans if span[2] > span[1]]


def _shades(windows: ScanWindows) -> list[Part]:
    return [_band(start, end, colour) for _, start, end, colour in _spans(windows)]


def _names(windows: ScanWindows) -> list[Part]:
    font = {"color": MUTED, "size": 11}
    inside = {"yref": "y domain", "xanchor": "left", "yanchor": "top", "showarrow": False, "font": font}
    return [{"text": name, "x": moment(start), "y": 1, **inside} for name, start, _, _ in _spans(windows)]


def _band(start: float, end: float, colour: str) -> Part:
    """Return a band over the whole height, behind the points."""
    edges = {"x0": moment(start), "x1": moment(end), "y0": 0, "y1": 1, "yref": "y domain"}
    return {"type": "rect", **edges, "fillcolor": colour, "line": {"width": 0}, "layer": "below"}


def _level(value: float, start: float, end: float) -> Part:
    edges = {"x0": moment(start), "x1": moment(end), "y0": value, "y1": value}
    return {"type": "line", **edges, "line": {"color": INK, "width": 1.5, "dash": "dash"}}


def _change(time: float) -> Part:
    edges = {"x0": moment(time), "x1": moment(time), "y0": 0, "y1": 1, "yref": "y domain"}
    return {"type": "line", **edges, "line": {"color": CHANGE, "width": 2}}


def _change_name(time: float) -> Part:
    font = {"color": CHANGE, "size": 12}
    over = {"yref": "paper", "yanchor": "bottom", "showarrow": False, "font": font}
    return {"text": "change point", "x": moment(time), "y": 1.0, **over}


def _layout(*, height: int) -> dict[str, object]:
    return {
        "height": height,
        "margin": {"l": 64, "r": 16, "t": 26, "b": 48},
        "paper_bgcolor": "#ffffff",
        "plot_bgcolor": "#ffffff",
        "font": {"family": FONT, "size": 13, "color": INK},
        "showlegend": False,
        "hoverlabel": {"font": {"family": FONT}},
    }


def _escaped(text: str, longest: int) -> str:
    """Cut a text in the middle, where names differ least, and escape it."""
    if len(text) > longest:
        half = longest // 2
        text = f"{text[: half - 1]}…{text[-half:]}"
    return html.escape(text)


def _short(frame: str) -> str:
    """Return the end of a dotted name, its most specific part, where there is little room."""
    return frame if "=" in frame or "/" in frame else ".".join(name_parts(frame)[-2:])


def _percent(ratio: float) -> str:
    return f"{ratio * 100:.2f} %"


def middles(starts: FloatArray, windows: ScanWindows) -> list[datetime]:
    """Return the times at which points are drawn: the middle of their windows."""
    return [moment(time + windows.resolution_s / 2) for time in starts]


def moment(epoch_s: float) -> datetime:
    """Return a time as plotly draws it."""
    # plotly draws times as written, as if local, so they must have no offset.
    return datetime.fromtimestamp(epoch_s, tz=UTC).replace(tzinfo=None)
