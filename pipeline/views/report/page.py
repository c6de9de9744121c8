"""One self-contained page for one regression: no network, every text from outside escaped."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
import plotly.io
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from pipeline.analysis.stacks import ELLIPSIS
from pipeline.model import SeriesKey, SeriesMatrix, StackMatrix
from pipeline.model.clock import to_iso
from pipeline.model.errors import InvalidMessage
from pipeline.model.frames import element
from pipeline.model.metric_kind import is_gcpu
from pipeline.views.report.explain import FINDINGS, describe_silence, in_order
from pipeline.views.report.figures import icicle_figure
from pipeline.views.report.flame import Icicle, icicle, largest_shifts
from pipeline.views.report.parts import FACTORS, parts_of, shared_beginning
from pipeline.views.report.series_chart import ChartShift, SeriesChart, series_chart
from pipeline.views.report.windows import DrawnSeries, ScanWindows, line_of

_SHIFTS = 12
_NEW = 1000.0  # a rise above a thousandfold starts from practically nothing
_SPARK = (160.0, 28.0)
_PLOTLY = {"displaylogo": False, "responsive": True, "modeBarButtonsToRemove": ["lasso2d", "select2d"]}


@dataclass(frozen=True, slots=True)
class ReportData:
    """Data of a page.

    ``series`` covers at least the scan's windows and holds the event's metric; group members that are in it
    get a small line. ``stacks`` may be empty, and then there are no flame graphs. ``frame`` is a sampler's
    name of the event's symbol, empty if none is known.
    """

    event: Mapping[str, Any]
    windows: ScanWindows
    series: SeriesMatrix
    stacks: StackMatrix
    frame: str = ""


def render_report(report: ReportData) -> str:
    """Return the page as HTML.

    Raises:
        InvalidMessage: the event lacks something that every event has, or it is of the wrong type.
    """
    shown = described(report.event)
    data = shown["data"]
    tree = icicle(report.stacks)
    figures = _figures(data, tree)
    return (
        environment(ratio=shown["ratio"])
        .get_template("page.html")
        .render(
            **shown
            | {
                "plotly": Markup(get_plotlyjs() if figures else ""),
                "frame": report.frame,
                "figures": figures,
                "chart": _chart(report, data),
                "trunk": tree.trunk,
                "shifts": largest_shifts(report.stacks, _SHIFTS),
                "windows": report.windows,
                "group": [
                    {**member, "spark": _spark(_line(report.series, member))} for member in shown["group"]
                ],
            }
        )
    )


def described(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return the variables of templates for an event alone, without series and stacks.

    Raises:
        InvalidMessage: the event lacks something that every event has, or it is of the wrong type.
    """
    parts = parts_of(event["data"])
    data = parts.data
    marked = element(data["metric_kind"], data["metric"])
    return {
        "event": event,
        "data": data,
        "change_time": data["change_time"],
        "detected_time": data["detected_time"],
        "suspects": parts.suspects,
        "meanings": FACTORS,
        "domains": in_order(parts.domains),
        "silences": [
            describe_silence(silence, ratio=is_gcpu(data["metric_kind"]))
            for silence in data.get("silences") or ()
        ],
        "stacks": parts.stacks,
        "shared": shared_beginning(parts.stacks, marked),
        "largest": max((abs(line.after - line.before) for line in parts.stacks), default=0.0),
        "marked": marked,
        "ellipsis": ELLIPSIS,
        "group": [{**member, "spark": ""} for member in parts.group],
        "more": parts.more,
        "ratio": is_gcpu(data["metric_kind"]),
        "frame": "",
    }


def _figures(data: Mapping[str, Any], tree: Icicle) -> dict[str, Markup]:
    figures: dict[str, Markup] = {}
    if len(tree.paths) > 1:
        service, metric = data["service"], data["metric"]
        figures["before"] = embedded(icicle_figure(tree, service, metric, "before"), "before")
        figures["after"] = embedded(icicle_figure(tree, service, metric, "after"), "after")
    return figures


def _chart(report: ReportData, data: Mapping[str, Any]) -> SeriesChart | None:
    line = _line(report.series, data)
    if line is None:
        return None
    shift = ChartShift(
        data["change_time"], data["before"], data["after"], interval=data["change_time_interval"]
    )
    return series_chart(line, report.windows, shift, from_zero=True)


def _line(series: SeriesMatrix, data: Mapping[str, Any]) -> DrawnSeries | None:
    """Return the values of an event's or a group member's metric, None if the store has none."""
    return line_of(series, SeriesKey(data["metric_kind"], data["metric"]))


def _spark(line: DrawnSeries | None) -> str:
    """Return the points of a small SVG line, empty if there is nothing to draw."""
    if line is None or np.isnan(line.values).all():
        return ""
    width, height = _SPARK
    low, high = 0.0, float(np.nanmax(line.values)) or 1.0
    step = width / max(1, len(line.values) - 1)
    return " ".join(
        f"{index * step:.1f},{height - 2 - (height - 4) * (value - low) / (high - low):.1f}"
        for index, value in enumerate(line.values.tolist())
        if not math.isnan(value)
    )


def embedded(figure: go.Figure, name: str) -> Markup:
    """Return a plot as HTML that needs plotly on the page."""
    return Markup(  # noqa: S704  # plotly escapes < > & in its JSON; labels were escaped by figures
        plotly.io.to_html(
            figure, include_plotlyjs=False, full_html=False, div_id=f"figure-{name}", config=_PLOTLY
        )
    )


def environment(*, ratio: bool, folders: Sequence[Path] = ()) -> Environment:
    """Return the environment of templates; ``ratio`` writes levels in per cent.

    Templates of ``folders`` come before those of this package, which they may include.
    """
    environment = Environment(
        loader=FileSystemLoader([*folders, Path(__file__).parent]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["diff_url"] = None
    environment.filters.update(
        level=lambda value: _percent(value) if ratio else f"{value:.4g}",
        shift=lambda value: f"{_points(value)} points" if ratio else f"{value:+.4g}",
        share=lambda value: f"{value:.0%}".replace("%", " %"),
        percent=_percent,
        points=_points,
        relative=lambda value: "new" if value is None or value > _NEW else f"{value * 100:+.0f} %",
        p_value=lambda value: "< 0.0001" if value < 0.0001 else f"{value:.4f}",
        finding=FINDINGS.__getitem__,
        servers=lambda value: f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}",
        clock=lambda value: to_iso(value).replace("T", " ").removesuffix("Z").removesuffix(".000") + " UTC",
        span=_span,
        number=lambda value: f"{value:.2f}" if _is_number(value) else "–",
        width=lambda value: f"{100 * min(1.0, max(0.0, value)):.0f}" if _is_number(value) else "0",
    )
    return environment


def _percent(ratio: float) -> str:
    return f"{_points(ratio).lstrip('+')} %"


_RESIDUAL = 1e-10
"""Difference of shares that sums of floating-point numbers leave."""


def _points(ratio: float) -> str:
    """Write a share in percentage points: two decimals, or two significant digits below 0.05.

    A regression may be as small as 0.005 points; what is far below it is a residual of sums, and nothing.
    """
    ratio = ratio if abs(ratio) >= _RESIDUAL else 0.0
    return f"{ratio * 100:+.2f}" if abs(ratio) >= 0.0005 or not ratio else f"{ratio * 100:+.2g}"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _span(seconds: float) -> str:
    """Write a time span in one or two units, such as ``12 s``, ``3 min``, ``5 h`` or ``2 d``."""
    if not math.isfinite(seconds):
        raise InvalidMessage("a time span should be finite")
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if abs(seconds) >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
