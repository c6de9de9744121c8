"""Series and flame graphs as plotly figures in JSON, which the page draws in its own colours."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import plotly.graph_objects as go
import plotly.io
from markupsafe import Markup

from pipeline.model import SeriesKey
from pipeline.model.metric_kind import is_gcpu
from pipeline.model.units import DAY_S, WEEK_S
from pipeline.storage.interface import RowQuery, SeriesQuery, SeriesSource, Store
from pipeline.views.report.figures import moment, series_figure
from pipeline.views.report.windows import ScanWindows, line_of

SPANS: Mapping[str, float] = {
    "scan": 0.0,
    "day": DAY_S,
    "week": WEEK_S,
    "month": 30 * DAY_S,
    "quarter": 91 * DAY_S,
    "year": 365 * DAY_S,
}
"""Spans of a series around its change point; ``scan`` is the scanned span, and as much after."""

MOST_POINTS = 700
MOST_RELEASES = 60

_NAMED = 0.4
"""Share of a drawn span that a scan's windows need so that their names do not cover each other."""

_EDGE = 0.08
"""Share of the width from an edge within which a name would be cut."""

_AFTER = 0.4
"""Share of a span that is after the change point."""


def figure_json(figure: go.Figure) -> str:
    """Return a figure as the page's script reads it."""
    text: str = plotly.io.to_json(figure, validate=False)
    return text


def figure_block(figure: go.Figure) -> Markup:
    """Return a figure for a data block of a page."""
    # No text can end the block: in JSON "<" stands within strings alone.
    return Markup(figure_json(figure).replace("<", "\\u003c"))  # noqa: S704


Span = tuple[float, float, float]
"""Start, end and resolution of a drawn span."""


def span_of(windows: ScanWindows, change_time: float, span: str, now: float) -> Span:
    """Return the bounds of a named span around a change.

    Raises:
        KeyError: there is no such span.
    """
    length = SPANS[span]
    if length:
        start = change_time - (1 - _AFTER) * length
        end = max(min(change_time + _AFTER * length, now), change_time + 2 * windows.resolution_s)
    else:
        start, end = windows.start, windows.end + (windows.end - windows.analysis_start)
    return fitted(windows, start, end)


def fitted(windows: ScanWindows, start: float, end: float) -> Span:
    """Return a span in windows of the scan, or of several of them, with at most MOST_POINTS."""
    end = max(end, start + 2 * windows.resolution_s)
    factor = max(1, math.ceil((end - start) / windows.resolution_s / MOST_POINTS))
    resolution = windows.resolution_s * factor
    start = windows.start + math.floor((start - windows.start) / resolution) * resolution
    return start, end, resolution


def draw_series(store: Store, data: Mapping[str, Any], windows: ScanWindows, span: Span) -> go.Figure | None:
    """Draw an event's series around its change point, with the releases of its service; None without data.

    Args:
        store: Has the series.
        data: Of the event, times as epoch seconds.
        windows: Of its scan.
        span: The drawn span.

    Raises:
        StoreUnavailable: the store did not answer.
    """
    start, end, resolution = span
    key = SeriesKey(data["metric_kind"], data["metric"])
    source: SeriesSource = "gcpu" if is_gcpu(key.kind) else "service"
    matrix = store.series(SeriesQuery(source, data["service"], start, end, resolution, [key]))
    line = line_of(matrix, key)
    if line is None:
        return None
    figure = series_figure(
        line,
        replace(windows, resolution_s=resolution),
        data["change_time"],
        data["before"],
        data["after"],
        interval=data["change_time_interval"],
    )
    figure.update_yaxes(rangemode="normal")
    figure.update_xaxes(range=[moment(start), moment(end)], title=None)
    _arrange_names(figure, windows, start, end)
    figure.data[0].update(mode="lines" if len(line.times) > 250 else "lines+markers")
    if end - start > 3 * DAY_S:
        figure.data[0].update(
            hovertemplate="%{x|%d %b %H:%M}<br>%{y:.3~g}" + (" %" if line.ratio else "") + "<extra></extra>"
        )
    columns = ("id", "title", "author")
    changes = store.rows(RowQuery("changes", data["service"], start, end, columns=columns))
    suspects = {str((suspect.get("change") or {}).get("id")) for suspect in data.get("root_causes") or ()}
    _mark_releases(figure, changes, suspects)
    return figure


def _arrange_names(figure: go.Figure, windows: ScanWindows, start: float, end: float) -> None:
    """Leave out names of windows that would cover each other, and keep that of the change inside."""
    has_room = windows.end - windows.start >= _NAMED * (end - start)
    names = [note for note in figure.layout.annotations if has_room or note.text == "change point"]
    for name in names:
        position = (name.x - moment(start)) / (moment(end) - moment(start))
        if name.text == "change point" and not _EDGE <= position <= 1 - _EDGE:
            name.xanchor = "left" if position < _EDGE else "right"
    figure.layout.annotations = names


def draw_plain(
    store: Store, key: SeriesKey, service: str, span: tuple[float, float], resolution_s: float
) -> Any:
    """Return a series as times and values, for programs."""
    source: SeriesSource = "gcpu" if is_gcpu(key.kind) else "service"
    line = line_of(store.series(SeriesQuery(source, service, *span, resolution_s, [key])), key)
    return ([], []) if line is None else (line.times.tolist(), line.values.tolist())


def _mark_releases(figure: go.Figure, changes: Sequence[Mapping[str, Any]], suspects: set[str]) -> None:
    """Draw one mark a release, the changes of one moment, on the lower edge; those of suspects in red."""
    releases: dict[float, list[Mapping[str, Any]]] = {}
    for change in changes:
        releases.setdefault(change["time"], []).append(change)
    shown = sorted(releases.items(), key=lambda pair: not any(one["id"] in suspects for one in pair[1]))
    shown = shown[:MOST_RELEASES]
    if not shown:
        return
    named = [any(one["id"] in suspects for one in made) for _, made in shown]
    figure.add_scatter(
        x=[moment(time) for time, _ in shown],
        y=[0.02] * len(shown),
        yaxis="y2",
        mode="markers",
        name="releases",
        marker={
            "symbol": "triangle-up",
            "size": [13 if suspect else 9 for suspect in named],
            "color": ["#b3261e" if suspect else "#7c8a99" for suspect in named],
        },
        hovertext=["<br>".join(_titled(change) for change in made[:8]) for _, made in shown],
        hovertemplate="%{x|%d %b %H:%M}<br>%{hovertext}<extra></extra>",
    )
    figure.update_layout(yaxis2={"overlaying": "y", "range": [0, 1], "visible": False, "fixedrange": True})


def _titled(change: Mapping[str, Any]) -> str:
    by = f" – {change['author']}" if change["author"] else ""
    return html.escape(f"{change['id'][:10]} {change['title'][:70]}{by}")
