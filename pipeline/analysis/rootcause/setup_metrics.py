"""Set-up metrics of a scan: their own change points, and the metrics that explain a regression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from pipeline.analysis.detect.expected import normalise
from pipeline.analysis.detect.matrix import rows_by_series, select_rows
from pipeline.analysis.detect.seasonal.daily import CycleConfig
from pipeline.analysis.detect.short_term import WindowIndexes, find_candidates
from pipeline.analysis.rootcause.correlation import shows_changes
from pipeline.analysis.rootcause.explanation import fit_metric
from pipeline.model import Candidate, Direction, FloatArray, Scan, SeriesKey, SeriesMatrix, SetupExplanation
from pipeline.model.units import DAY_S

MOST_NAMED = 3
"""Explanations of a regression at most, as there are suspects (FBDetect §5.5.3)."""

STEP = "setup_explanation"
"""Key of the step that asks for explanations."""


def without_cycle(matrix: SeriesMatrix, scan: Scan) -> FloatArray | None:
    """Return series without the cycle that each day of a scan's history repeats: (series, windows).

    None where the history is too short to know one.
    """
    if scan.analysis_start - matrix.start < CycleConfig().min_days * DAY_S:
        return None
    history = round((scan.analysis_start - matrix.start) / matrix.resolution_s)
    later = max(len(matrix.totals) - history, 1)
    return normalise(matrix, history=history, longest=later, apart=later).levels()


@dataclass(frozen=True, slots=True, eq=False)
class Regressed:
    """The series of a candidate."""

    candidate: Candidate
    values: FloatArray  # (windows,) without its daily cycle, where that is known
    weights: FloatArray  # (windows,) 0 = no data
    suspected: float = 0.0  # confidence in the changes that are named


@dataclass(frozen=True)  # without slots: what is derived of it is kept
class SetupMetrics:
    """The set-up metrics that may explain a regression, over the windows of a scan."""

    scan: Scan
    whole: SeriesMatrix  # with those that explain nothing

    @cached_property
    def matrix(self) -> SeriesMatrix:
        """The metrics that may explain a regression."""
        return select_rows(self.whole, [n for n, name in enumerate(self.whole.names) if shows_changes(name)])

    @cached_property
    def rows(self) -> dict[SeriesKey, int]:
        """Row of each metric."""
        return rows_by_series(self.matrix)

    @cached_property
    def steps(self) -> tuple[Candidate, ...]:
        """Change points of the metrics in the analysis window, in both directions."""
        if not self.matrix.names:
            return ()
        edges = (self.scan.analysis_start, self.scan.analysis_end, self.scan.end)
        windows = WindowIndexes(
            *(round((edge - self.matrix.start) / self.matrix.resolution_s) for edge in edges)
        )
        ways: tuple[Direction, ...] = ("up", "down")
        return tuple(
            candidate for way in ways for candidate in find_candidates(self.matrix, windows, direction=way)
        )

    @cached_property
    def levels(self) -> FloatArray:
        """Values of the metrics, without daily cycles where these are known: (metrics, windows)."""
        levels = without_cycle(self.matrix, self.scan)
        return self.matrix.samples if levels is None else levels

    def stepping_with(self, candidate: Candidate) -> list[Candidate]:
        """Return the change points near the change point of a candidate."""
        begin, end = candidate.change_time_span
        return [
            step
            for step in self.steps
            if step.change_time_span[0] <= end and begin <= step.change_time_span[1]
        ]

    def explain(
        self, regressed: Regressed, steps: Sequence[Candidate], deployed: Sequence[float]
    ) -> tuple[SetupExplanation, ...]:
        """Return the metrics that explain a regression better than a step at any change, the likeliest first.

        Args:
            regressed: The series.
            steps: Change points of metrics that come into question.
            deployed: When changes were deployed, epoch seconds.
        """
        explanations = []
        for step in steps:
            fit = fit_metric(
                regressed.values,
                regressed.weights,
                self.levels[self.rows[step.series]],
                split=round(self._position(regressed.candidate.change_time)),
                deployed=[self._position(time) for time in deployed],
                tried=len(self.rows),
            )
            if fit is not None and fit.explains(regressed.suspected):
                levels = (step.before, step.after, fit.correlation, fit.explained)
                explanations.append((-fit.evidence, SetupExplanation(step.metric, step.change_time, *levels)))
        explanations.sort(key=lambda pair: (pair[0], pair[1].metric))
        return tuple(explanation for _, explanation in explanations[:MOST_NAMED])

    def _position(self, time: float) -> float:
        """Return a moment in windows since the scan's start."""
        return (time - self.matrix.start) / self.matrix.resolution_s
