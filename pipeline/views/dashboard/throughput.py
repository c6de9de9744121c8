"""Throughput: recently counted samples a second, by service and in total."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from pipeline.model import FloatArray
from pipeline.model.units import DAY_S, HOUR_S, MINUTE_S, WEEK_S
from pipeline.storage.interface import SeriesQuery, Store
from pipeline.views.report.figures import FONT, moment

SPANS: Mapping[str, tuple[float, float]] = {
    "6 hours": (6 * HOUR_S, 10 * MINUTE_S),
    "day": (DAY_S, 30 * MINUTE_S),
    "week": (WEEK_S, 2 * HOUR_S),
}
"""Length and window width of drawn spans, by name."""

LATE_S = 2 * MINUTE_S
"""Delay after which a window counts as complete: agents send at the end of their interval."""

MOST_READ = 60
"""Most services that are read, one query each: those with the most samples."""

MOST_DRAWN = 7
"""Services with a colour of their own; the others share one."""

COLOURS = ("#4c78c8", "#e08a2e", "#2f9c8f", "#c8554f", "#8f6fc4", "#9a9a34", "#c66fa3", "#8793a1")
"""Colours of the services, and of the others: visible on light and on dark."""


@dataclass(frozen=True, slots=True)
class Throughput:
    """Samples a second by window; services without any are left out."""

    times: FloatArray  # (windows,) start of each, epoch seconds
    services: tuple[str, ...]  # the busiest first
    rates: FloatArray  # (services, windows)


def read_throughput(store: Store, services: Sequence[str], span: str, now: float) -> Throughput:
    """Read the last whole windows of some services, up to when their samples have arrived.

    Raises:
        KeyError: there is no such span.
        StoreUnavailable: the store did not answer.
    """
    length_s, width_s = SPANS[span]
    end = (now - LATE_S) // width_s * width_s
    start = end - length_s
    times = start + width_s * np.arange(round(length_s / width_s))
    rates = np.zeros((len(services), len(times)))
    for row, service in enumerate(services):
        rates[row] = store.series(SeriesQuery("gcpu", service, start, end, width_s, [])).totals / width_s
    order = [row for row in np.argsort(-rates.sum(axis=1), kind="stable").tolist() if rates[row].any()]
    return Throughput(times.astype(np.float64), tuple(services[row] for row in order), rates[order])


def draw_throughput(found: Throughput) -> go.Figure | None:
    """Draw services stacked, so that the upper edge is their sum; None without any."""
    if not found.services:
        return None
    named, rates = list(found.services[:MOST_DRAWN]), list(found.rates[:MOST_DRAWN])
    if unnamed := len(found.services) - len(named):
        named.append(f"{unnamed} others")
        rates.append(found.rates[MOST_DRAWN:].sum(axis=0))
    times = [moment(time) for time in found.times.tolist()]
    figure = go.Figure()
    for name, rate, colour in zip(named, rates, COLOURS, strict=False):
        figure.add_scatter(
            x=times,
            y=rate.tolist(),
            name=html.escape(name[:60]),
            mode="lines",
            stackgroup="all",
            line={"color": colour, "width": 1},
            hovertemplate="%{y:,.3~g}/s",
        )
    figure.add_scatter(
        x=times,
        y=found.rates.sum(axis=0).tolist(),
        name="all",
        mode="lines",
        line={"width": 1.8},
        meta="total",
        hovertemplate="%{y:,.3~g}/s",
    )
    figure.update_layout(
        height=300,
        margin={"l": 56, "r": 12, "t": 8, "b": 36},
        hovermode="x unified",
        font={"family": FONT, "size": 13},
        legend={"orientation": "h", "y": -0.16},
    )
    figure.update_yaxes(rangemode="tozero", title={"text": "samples a second"})
    return figure
