"""Evidence that filters decide by: the series of a scan's candidates, and candidates of earlier scans."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from pipeline.analysis.detect.expected import NormaliseConfig, normalise
from pipeline.analysis.detect.matrix import rows_by_series
from pipeline.model import Candidate, Decision, FloatArray, IntArray, Scan, SeriesKey, SeriesMatrix


@dataclass(frozen=True, slots=True)
class FilterConfig:
    """A workload's settings of filters; exactly one threshold is given."""

    resolution_s: float
    analysis_s: float
    rising: bool = True  # whether a rise is a regression
    absolute: float | None = None  # detection threshold, in the series' unit
    relative: float | None = None  # or as a share of the level before
    normalise: NormaliseConfig = field(default_factory=NormaliseConfig)
    optional: tuple[str, ...] = ()  # keys of the optional steps to ask


@dataclass(frozen=True, slots=True)
class Known:
    """A regression that an earlier scan passed on, and when that scan ended."""

    candidate: Candidate
    seen_until: float  # epoch seconds


@dataclass(frozen=True, slots=True)
class FilterEvidence:
    """Evidence gathered for a scan."""

    scan: Scan
    series: SeriesMatrix  # of its candidates, from its start to its end; those that are gone are absent
    earlier: tuple[Known, ...] = ()


@dataclass(frozen=True, slots=True)
class Levels:
    """Candidates' series with their daily cycle taken out."""

    start: float
    resolution_s: float
    rows: Mapping[SeriesKey, int]
    levels: FloatArray  # (series, windows), NaN where the weight is 0
    cycles: FloatArray  # (series, windows)
    weights: FloatArray  # (series, windows)

    def row(self, candidate: Candidate) -> int | None:
        """Return the row of a candidate's series; None if the store no longer holds it."""
        return self.rows.get(candidate.series)

    def column(self, time: float) -> int:
        """Return the window that begins nearest to a time."""
        return round((time - self.start) / self.resolution_s)


@dataclass(frozen=True, slots=True)
class FilterCase:
    """A scan with the evidence that a filter decides by."""

    scan: Scan
    levels: Levels
    earlier: tuple[Known, ...]
    config: FilterConfig


@dataclass(frozen=True, slots=True)
class ChangeSpans:
    """Change points of rows of levels, and the windows of their scan, as indexes of columns."""

    change_index: IntArray  # (rows,) first window of the new regime
    analysis_index: int  # the historical window ends, the analysis window begins
    extended_index: int  # the extended window begins; the number of windows without one
    resolution_s: float  # width of a window
    rising: bool  # whether a rise is the regression; otherwise a fall


RowJudge = Callable[[FloatArray, FloatArray, ChangeSpans], Sequence[Decision]]
"""Decides on (rows, windows) of values with their weights."""


def open_case(evidence: FilterEvidence, config: FilterConfig) -> FilterCase:
    """Return the case that the filters decide on; the levels of each series are computed once."""
    matrix, scan = evidence.series, evidence.scan
    history = round((scan.analysis_start - scan.start) / config.resolution_s)
    after = max(1, matrix.samples.shape[1] - history)
    series = normalise(matrix, history=history, longest=after, apart=after, config=config.normalise)
    levels = Levels(
        start=scan.start,
        resolution_s=config.resolution_s,
        rows=rows_by_series(matrix),
        levels=series.levels(),
        cycles=series.cycle,
        weights=series.exposure,
    )
    return FilterCase(scan, levels, evidence.earlier, config)


def decide_by_rows(
    step: str, candidates: Sequence[Candidate], case: FilterCase, shown: FloatArray, judge: RowJudge
) -> list[Decision]:
    """Decide on candidates by their series, all together; candidates without a series are dropped.

    Args:
        step: Key of the step.
        candidates: Whose change points are judged.
        case: With their levels.
        shown: (series, windows) the values to look at.
        judge: Decides on rows of these.
    """
    levels, scan = case.levels, case.scan
    decisions = [Decision(step, False, code="no_series") for _ in candidates]
    rows_of = [(index, row) for index, c in enumerate(candidates) if (row := levels.row(c)) is not None]
    if not rows_of:
        return decisions
    rows = [row for _, row in rows_of]
    change: IntArray = np.array([levels.column(candidates[index].change_time) for index, _ in rows_of])
    spans = ChangeSpans(
        change_index=np.clip(change, 1, shown.shape[1] - 1),
        analysis_index=levels.column(scan.analysis_start),
        extended_index=levels.column(scan.analysis_end),
        resolution_s=case.config.resolution_s,
        rising=case.config.rising,
    )
    judged = judge(shown[rows], levels.weights[rows], spans)
    for (index, _), decision in zip(rows_of, judged, strict=True):
        decisions[index] = decision
    return decisions
