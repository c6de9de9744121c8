"""The series of a scan's candidates, in the forms in which filters look at them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pipeline.detect.expected import normalise
from pipeline.detect.share_normalisation import with_dilution
from pipeline.filters.same_regression import is_gradual
from pipeline.filters.seasonality import judge_seasonality
from pipeline.filters.went_away import judge_went_away
from pipeline.model import Candidate, Decision, FloatArray, IntArray, Scan
from pipeline.stages.ablation import NOTHING, Without, normalise_config
from pipeline.storage.interface import Store
from pipeline.workloads import Workload


class CandidateSeries:
    """Reads a scan's series once, and asks the filters that look at series."""

    def __init__(self, store: Store, scan: Scan, workload: Workload, *, without: Without = NOTHING) -> None:
        self._scan = scan
        self._workload = workload
        resolution_s = workload.resolution_s
        matrix = store.series(workload.series, scan.service, scan.start, scan.end, resolution_s)
        history = round(workload.historical_s / resolution_s)
        if "composition" not in without:
            matrix = with_dilution(matrix, history=history)
        wanted = {(c.metric_kind, c.metric) for c in scan.candidates}
        rows = [row for row, key in enumerate(zip(matrix.kinds, matrix.names, strict=True)) if key in wanted]
        series = normalise(
            replace(
                matrix,
                kinds=tuple(matrix.kinds[row] for row in rows),
                names=tuple(matrix.names[row] for row in rows),
                samples=matrix.samples[rows],
            ),
            history=history,
            longest=max(1, matrix.samples.shape[1] - history),
            apart=max(1, matrix.samples.shape[1] - history),
            config=normalise_config(without),
        )
        self._row = {(matrix.kinds[row], matrix.names[row]): place for place, row in enumerate(rows)}
        self._levels = series.levels()
        self._cycles = series.cycle
        self._weights = series.exposure

    def judge_went_away(self, candidates: Sequence[Candidate]) -> list[Decision]:
        """Judge whether each change is still there at the end."""
        return self._judge(candidates, seasonal=False)

    def judge_seasonality(self, candidates: Sequence[Candidate]) -> list[Decision]:
        """Judge whether each change is more than what comes back every day or week."""
        return self._judge(candidates, seasonal=True)

    def recent(self, candidate: Candidate) -> float:
        """Return the level over an analysis window just before the change; the one before without data."""
        row = self._row.get((candidate.metric_kind, candidate.metric))
        if row is None:
            return candidate.before
        end = self._column(candidate.change_time)
        span = slice(max(end - round(self._workload.analysis_s / self._workload.resolution_s), 0), end)
        known = self._weights[row, span] > 0
        if not known.any():
            return candidate.before
        return float(np.average(self._levels[row, span][known], weights=self._weights[row, span][known]))

    def is_gradual(self, candidate: Candidate, since: float) -> bool:
        """Tell whether the series has grown steadily since a moment, rather than stepped at the change."""
        row = self._row.get((candidate.metric_kind, candidate.metric))
        if row is None:
            return False
        first, change = max(self._column(since), 0), self._column(candidate.change_time)
        if candidate.kind == "long_term":  # where it begins, nothing steps
            change = (first + self._levels.shape[1]) // 2
        return is_gradual(self._levels[row, first:], self._weights[row, first:], change=change - first)

    def _judge(self, candidates: Sequence[Candidate], *, seasonal: bool) -> list[Decision]:
        step = "seasonality" if seasonal else "went_away"
        decisions = [Decision(step, False, code="no_series") for _ in candidates]
        asked = [place for place, c in enumerate(candidates) if (c.metric_kind, c.metric) in self._row]
        if not asked:
            return decisions
        rows = [self._row[candidates[place].metric_kind, candidates[place].metric] for place in asked]
        change: IntArray = np.array([self._column(candidates[place].change_time) for place in asked])
        levels: FloatArray = self._levels[rows]
        shown = levels + self._cycles[rows] if seasonal else levels
        judge = judge_seasonality if seasonal else _judge_went_away
        found = judge(
            shown,
            self._weights[rows],
            change_index=np.clip(change, 1, levels.shape[1] - 1),
            analysis_index=self._column(self._scan.analysis_start),
            extended_index=self._column(self._scan.analysis_end),
            resolution_s=self._workload.resolution_s,
            rising=self._workload.direction == "up",
        )
        for place, decision in zip(asked, found, strict=True):
            decisions[place] = decision
        return decisions

    def _column(self, time: float) -> int:
        return round((time - self._scan.start) / self._workload.resolution_s)


def _judge_went_away(values: FloatArray, weights: FloatArray, **where: Any) -> list[Decision]:
    return [one.decision for one in judge_went_away(values, weights, **where)]
