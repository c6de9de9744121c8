"""One candidate's story as a self-contained page: no network, every text from outside escaped."""

from __future__ import annotations

from pipeline.analysis.filters.went_away import Pattern
from pipeline.messages.ledger import LedgerEntry
from pipeline.model import Decision, FloatArray
from pipeline.model.metric_kind import is_gcpu
from pipeline.model.steps import sentence
from pipeline.views.report.explain import CandidateStory, in_order, number
from pipeline.views.report.page import environment
from pipeline.views.report.series_chart import ChartShift, SeriesChart, Sign, StudyCurve, Style, series_chart
from pipeline.views.report.study import Study
from pipeline.views.report.windows import DrawnSeries, ScanWindows

_BUCKETS = "abcdefghijklmnopqrstuvwxyz"
_MOST_SAX_LETTERS = 150
"""Most of them on one plot: of the history only the latest are drawn."""


def render_why(
    entry: LedgerEntry,
    story: CandidateStory,
    windows: ScanWindows,
    line: DrawnSeries | None,
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
        study: What the filters see in it; None if ``line`` is.
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
        plotly="",
        chart=_chart(entry, windows, line, study) if line else None,
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


def _chart(entry: LedgerEntry, windows: ScanWindows, line: DrawnSeries, study: Study | None) -> SeriesChart:
    candidate = entry.candidate
    shift = ChartShift(
        candidate.change_time, candidate.before, candidate.after, interval=candidate.change_time_interval
    )
    if study is None:
        return series_chart(line, windows, shift)
    parts: list[tuple[FloatArray | None, Style]] = [(study.season, "season"), (study.trend, "trend")]
    styles: tuple[Style, ...] = ("trend", "trend-before")
    parts += zip(study.lines, styles, strict=False)
    curves = [StudyCurve(values, style) for values, style in parts if values is not None]
    signs = _sax_letters(study.went_away.pattern, windows) if study.went_away else ()
    return series_chart(line, windows, shift, curves=curves, signs=signs)


def _sax_letters(pattern: Pattern, windows: ScanWindows) -> tuple[Sign, ...]:
    """Return each block's SAX letter in the middle of its bucket."""
    texts, starts = pattern.before + pattern.after, pattern.begins
    shown = [position for position, character in enumerate(texts) if character.isalpha()][-_MOST_SAX_LETTERS:]
    return tuple(
        Sign(
            windows.start + (starts[position] + pattern.block / 2) * windows.resolution_s,
            pattern.lowest + (_BUCKETS.index(texts[position]) + 0.5) * pattern.width,
            texts[position],
        )
        for position in shown
    )
