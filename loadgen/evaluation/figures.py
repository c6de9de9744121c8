"""Plots of a score, as plotly figures. Text from outside is escaped, since plotly reads HTML in labels."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import plotly.graph_objects as go

from loadgen.evaluation.funnel import funnel_lines, ratio, short_count
from loadgen.evaluation.model import RunFunnel, ScoredEvent
from loadgen.evaluation.rates import Rate
from loadgen.evaluation.scoring import SIZES, Score
from loadgen.evaluation.sweep import SweepCurve
from loadgen.evaluation.words import counts, interval, share
from pipeline.model import FloatArray
from pipeline.model.metric_kind import is_gcpu
from pipeline.views.report.figures import CHANGE, FONT, GRID, HIGHLIGHT, INK, LINE, MUTED

CURVE_COLOURS = (LINE, "#b06a00", "#3c7d5a")
DASHES = ("solid", "dash", "dot")


def roc_figure(curves: Sequence[SweepCurve], score: Score, runs: SweepCurve | None = None) -> go.Figure:
    """Draw curves of single statistics, the pipeline's own point, and the curve of its runs if any."""
    figure = go.Figure()
    floor = _floor(curves, score, runs)
    for curve, colour, dash in zip(curves, CURVE_COLOURS, DASHES, strict=False):
        figure.add_scatter(
            x=[max(point.false.value or 0.0, floor) for point in curve.points],
            y=[point.recall.value for point in curve.points],
            customdata=[_bound(curve, point.bound) for point in curve.points],
            name=f"{curve.setting} …, alone",
            mode="lines",
            line={"color": colour, "width": 2, "dash": dash, "shape": "hv"},
            hovertemplate="%{customdata}<br>recall %{y:.1%}<br>false positives %{x:.2g}<extra></extra>",
        )
    _draw_pipeline(figure, score, runs, floor)
    figure.update_layout(**_layout(height=430), showlegend=True)
    figure.update_xaxes(
        type="log",
        title={"text": "false positives per scanned series (log scale; 0 is drawn at the left edge)"},
        gridcolor=GRID,
        exponentformat="power",
        dtick=1,
    )
    figure.update_yaxes(title={"text": "recall"}, range=[-0.03, 1.05], tickformat=".0%", gridcolor=GRID)
    return figure


def _draw_pipeline(figure: go.Figure, score: Score, runs: SweepCurve | None, floor: float) -> None:
    if runs:
        figure.add_scatter(
            x=[max(point.false.value or 0.0, floor) for point in runs.points],
            y=[point.recall.value for point in runs.points],
            customdata=[f"{runs.setting} {share(point.bound)}" for point in runs.points],
            text=_labels(runs),
            name=f"whole pipeline, by {runs.setting}",
            mode="lines+markers+text",
            textposition="top left",
            textfont={"size": 11, "color": MUTED},
            line={"color": CHANGE, "width": 2},
            marker={"size": 8},
            hovertemplate="%{customdata}<br>recall %{y:.1%}<br>false positives %{x:.2g}<extra></extra>",
        )
    if score.false_positive_rate and score.recall.value is not None:
        figure.add_scatter(
            x=[max(score.false_positive_rate.value or 0.0, floor)],
            y=[score.recall.value],
            name="whole pipeline, these events",
            mode="markers",
            marker={
                "color": CHANGE,
                "size": 14,
                "symbol": "diamond",
                "line": {"color": "#fff", "width": 1.5},
            },
            error_y=_error_bars([score.recall]),
            hovertemplate="recall %{y:.1%}<br>false positives %{x:.2g}<extra></extra>",
        )


def rates_figure(series: Sequence[tuple[str, Sequence[tuple[str, Rate]]]]) -> go.Figure:
    """Draw several sets of named rates with their intervals, side by side at each name."""
    figure = go.Figure()
    for (title, rates), colour, symbol in zip(series, (LINE, HIGHLIGHT), ("circle", "square"), strict=False):
        shown = [(name, rate) for name, rate in rates if rate.of]
        figure.add_scatter(
            x=[name for name, _ in shown],
            y=[rate.value for _, rate in shown],
            error_y=_error_bars([rate for _, rate in shown]),
            customdata=[[counts(rate), interval(rate)] for _, rate in shown],
            name=title,
            mode="markers",
            marker={"color": colour, "size": 11, "symbol": symbol, "line": {"color": INK, "width": 1}},
            hovertemplate="%{x}<br>%{y:.1%} (%{customdata[0]})<br>95 %%: %{customdata[1]}<extra></extra>",
        )
    figure.update_layout(**_layout(height=330), showlegend=len(series) > 1, scattermode="group")
    figure.update_xaxes(type="category", gridcolor=GRID, categoryorder="array", categoryarray=_names(series))
    figure.update_yaxes(range=[-0.03, 1.05], tickformat=".0%", gridcolor=GRID)
    return figure


def delay_figure(score: Score) -> go.Figure:
    """Draw every expected row by its size: the delay of its report, or that it was missed."""
    figure = go.Figure()
    reported = [
        judged for judged in score.matching.having("true_positive") if judged.truth and judged.truth.gcpu
    ]
    missed = [row for row in score.matching.missed if row.gcpu]
    figure.add_scatter(
        x=[abs(judged.truth.delta) * 100 for judged in reported if judged.truth],
        y=[(judged.event.detected_time - judged.truth.start) / 3600 for judged in reported if judged.truth],
        text=[_escaped(f"{judged.truth.id}: {judged.event.metric}") for judged in reported if judged.truth],
        name="reported",
        mode="markers",
        marker={"color": LINE, "size": 9, "opacity": 0.8},
        hovertemplate="%{text}<br>%{x:.3g} % of the service<br>after %{y:.1f} h<extra></extra>",
    )
    figure.add_scatter(
        x=[abs(row.delta) * 100 for row in missed],
        y=[0.0] * len(missed),
        cliponaxis=False,
        text=[_escaped(f"{row.id}: {row.series[0]}") for row in missed],
        name="missed",
        mode="markers",
        marker={"color": CHANGE, "size": 11, "symbol": "x-thin-open", "line": {"width": 2}},
        hovertemplate="%{text}<br>%{x:.3g} % of the service<br>missed<extra></extra>",
    )
    figure.update_layout(**_layout(height=330), showlegend=True)
    figure.update_xaxes(
        type="log",
        title={"text": "size of the regression, per cent of the service's CPU (log scale)"},
        gridcolor=GRID,
        tickvals=[0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 4, 10],
    )
    figure.update_yaxes(title={"text": "hours from change to event"}, rangemode="tozero", gridcolor=GRID)
    return figure


def funnel_figure(funnel: RunFunnel) -> go.Figure:
    """Draw the candidates after each step, on a log scale."""
    lines = funnel_lines(funnel)[::-1]
    figure = go.Figure(
        go.Bar(
            y=[_escaped(line.title) for line in lines],
            x=[max(line.remaining, 0.8) for line in lines],
            text=[f"{short_count(line.remaining)} ({ratio(line)})" for line in lines],
            orientation="h",
            marker={"color": LINE},
            textposition="outside",
            cliponaxis=False,
            hoverinfo="skip",
        )
    )
    figure.update_layout(**_layout(height=90 + 34 * len(lines)))
    figure.update_layout(margin={"l": 8, "r": 130, "t": 34, "b": 48}, bargap=0.3)
    most = max((line.remaining for line in lines), default=1)
    figure.update_xaxes(
        type="log",
        gridcolor=GRID,
        title={"text": "change points left (log scale)"},
        dtick=1,
        range=[math.log10(0.7), math.log10(max(most, 10))],
    )
    figure.update_yaxes(automargin=True)
    return figure


def line_figure(times: FloatArray, values: FloatArray, event: ScoredEvent) -> go.Figure:
    """Draw a series around an event's change with the levels before and after. NaN is no data.

    Args:
        times: (points,) epoch seconds.
        values: (points,) gCPU ratios, or the metric's own unit.
        event: The reported event.
    """
    ratio = is_gcpu(event.metric_kind)
    scale, unit = (100.0, " %") if ratio else (1.0, "")
    figure = go.Figure()
    figure.add_scatter(
        x=[_moment(time) for time in times.tolist()],
        y=(values * scale).tolist(),
        mode="lines",
        line={"color": LINE, "width": 1.2},
        connectgaps=False,
        hovertemplate="%{x|%d %b %H:%M}<br>%{y:.4~g}" + unit + "<extra></extra>",
    )
    first, last = float(times[0]), float(times[-1])
    for level, begin, end in (
        (event.before, first, event.change_time),
        (event.after, event.change_time, max(last, event.change_time)),
    ):
        figure.add_shape(
            type="line",
            x0=_moment(begin),
            x1=_moment(end),
            y0=level * scale,
            y1=level * scale,
            line={"color": INK, "width": 1.5, "dash": "dash"},
        )
    figure.add_vline(x=_moment(event.change_time), line={"color": CHANGE, "width": 2})
    figure.add_vline(x=_moment(event.detected_time), line={"color": MUTED, "width": 1, "dash": "dot"})
    figure.update_layout(**_layout(height=240), showlegend=False)
    figure.update_xaxes(gridcolor=GRID)
    figure.update_yaxes(gridcolor=GRID, ticksuffix=unit)
    return figure


def _floor(curves: Sequence[SweepCurve], score: Score, runs: SweepCurve | None) -> float:
    """Return the position of a rate of 0 on a log scale: a factor below the smallest other rate."""
    rates = [point.false.value for curve in (*curves, *([runs] if runs else [])) for point in curve.points]
    rates += [score.false_positive_rate.value] if score.false_positive_rate else []
    return min((rate for rate in rates if rate), default=1e-6) / 2


def _bound(curve: SweepCurve, bound: float) -> str:
    value = f"{bound:.3g}" if "p-value" in curve.setting else f"{share(bound)} of the service"
    return f"{curve.setting} {value}"


def _labels(runs: SweepCurve) -> list[str]:
    """Return a label for each point that differs in position from the one before."""
    labels: list[str] = []
    before: tuple[float | None, float | None] | None = None
    for point in runs.points:
        here = (point.false.value, point.recall.value)
        labels.append("" if here == before else share(point.bound))
        before = here
    return labels


def _error_bars(rates: Sequence[Rate]) -> dict[str, Any]:
    plus, minus = [], []
    for rate in rates:
        (low, high), value = rate.interval or (0.0, 0.0), rate.value or 0.0
        plus.append(high - value)
        minus.append(value - low)
    return {
        "type": "data",
        "symmetric": False,
        "array": plus,
        "arrayminus": minus,
        "color": MUTED,
        "thickness": 1.4,
        "width": 5,
    }


def _names(series: Sequence[tuple[str, Sequence[tuple[str, Rate]]]]) -> list[str]:
    used = {name for _, rates in series for name, _ in rates}
    return [name for name, _, _ in SIZES if name in used] or list(
        dict.fromkeys(name for _, rates in series for name, _ in rates)
    )


def _layout(*, height: int) -> dict[str, Any]:
    return {
        "height": height,
        "margin": {"l": 64, "r": 20, "t": 34, "b": 52},
        "paper_bgcolor": "#ffffff",
        "plot_bgcolor": "#ffffff",
        "font": {"family": FONT, "size": 13, "color": INK},
        "hoverlabel": {"font": {"family": FONT}},
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
    }


def _escaped(text: str, longest: int = 120) -> str:
    return html.escape(text if len(text) <= longest else f"{text[: longest - 1]}…")


def _moment(epoch_s: float) -> datetime:
    # plotly draws local-looking times as they are written, so an offset must not be there.
    return datetime.fromtimestamp(epoch_s, tz=UTC).replace(tzinfo=None)
