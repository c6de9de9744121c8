"""One candidate's story as a self-contained page: no network, every text from outside escaped."""

from __future__ import annotations

import plotly.graph_objects as go
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from pipeline.codec.ledger import LedgerEntry
from pipeline.filters.went_away import Pattern
from pipeline.model import Decision
from pipeline.model.metric_kind import is_gcpu
from pipeline.report.explain import Explanation, in_order, number
from pipeline.report.figures import middles, moment, series_figure
from pipeline.report.page import embedded, environment
from pipeline.report.study import Study
from pipeline.report.windows import Line, ScanWindows
from pipeline.steps import sentence

_BUCKETS = "abcdefghijklmnopqrstuvwxyz"
_MOST_SAX_LETTERS = 150
"""More of them on one plot cannot be read: of the history only the latest are drawn."""

_TREND = "#2e7d32"
_SEASON = "#e07b00"
_SAX_LETTER = "#6a3d9a"


def render_why(
    entry: LedgerEntry,
    story: Explanation,
    windows: ScanWindows,
    line: Line | None,
    study: Study | None,
    *,
    note: str | None = None,
) -> str:
    """Return the page as HTML.

    Args:
        entry: The ledger's line.
        story: The same in words.
        windows: Of the scan.
        line: Its series; None if there is no data any more.
        study: What the filters see in it; None as well.
        note: Why there is no data.
    """
    went_away = study.went_away if study else None
    terms = (
        [
            ("new pattern", went_away.new_pattern),
            ("significant regression", went_away.significant),
            ("lasting trend", went_away.lasting),
            ("regression gone away", went_away.gone_away),
        ]
        if went_away
        else []
    )
    templates = environment(ratio=is_gcpu(entry.candidate.metric_kind))
    templates.filters["statistic"] = number
    templates.filters["went_away"] = lambda code: sentence(Decision("went_away", passed=False, code=code))
    return templates.get_template("why.html").render(
        plotly=Markup(get_plotlyjs() if line else ""),
        figure=embedded(_figure(entry, windows, line, study), "series") if line else None,
        note=note,
        story=story,
        domains=in_order(entry.candidate.domains),
        service=entry.scan.service,
        metric=entry.candidate.metric,
        resolution_s=windows.resolution_s,
        pattern=went_away.pattern if went_away else None,
        seasons=study.seasons if study else (),
        lines=len(study.lines) if study else 0,
        terms=terms,
    )


def _figure(entry: LedgerEntry, windows: ScanWindows, line: Line, study: Study | None) -> go.Figure:
    candidate = entry.candidate
    figure = series_figure(
        line,
        windows,
        candidate.change_time,
        candidate.before,
        candidate.after,
        interval=candidate.change_time_interval,
    )
    # A change of a few per cent would be a flat line above 0.
    figure.update_yaxes(rangemode="normal")
    scale = 100.0 if line.ratio else 1.0
    if study is None:
        return figure
    parts = [(study.season, _SEASON, "solid"), (study.trend, _TREND, "solid")]
    parts += [(line, _TREND, dash) for line, dash in zip(study.lines, ("solid", "dot"), strict=False)]
    for part, colour, dash in parts:
        if part is not None:
            figure.add_scatter(
                x=middles(line.times[: len(part)], windows),
                y=(part * scale).tolist(),
                mode="lines",
                line={"color": colour, "width": 1.2, "dash": dash},
                hoverinfo="skip",
            )
    if study.went_away:
        _draw_sax_letters(figure, study.went_away.pattern, windows, scale)
    return figure


def _draw_sax_letters(figure: go.Figure, pattern: Pattern, windows: ScanWindows, scale: float) -> None:
    """Write each block's SAX letter in the middle of its bucket."""
    texts, starts = pattern.before + pattern.after, pattern.begins
    shown = [position for position, character in enumerate(texts) if character.isalpha()][-_MOST_SAX_LETTERS:]
    levels = [pattern.lowest + (_BUCKETS.index(texts[position]) + 0.5) * pattern.width for position in shown]
    middles = [
        windows.start + (starts[position] + pattern.block / 2) * windows.resolution_s for position in shown
    ]
    figure.add_scatter(
        x=[moment(time) for time in middles],
        y=[level * scale for level in levels],
        mode="text",
        text=[texts[position] for position in shown],
        textfont={"color": _SAX_LETTER, "size": 13},
        hoverinfo="skip",
    )
