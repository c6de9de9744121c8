"""The store at a constant mix: series as if the mix of their senders had stayed the same.

The differences between strata are learnt from the span of a scan, so every stage reads the same series at
any time. The detector finds the effects of releases, and candidates carry them. Stacks stay as counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from pipeline.analysis.mix import releases
from pipeline.analysis.mix.mix import Mix, fit_mix
from pipeline.analysis.mix.releases import Effects, ReleaseCosts, ReleaseEffect, Rollout
from pipeline.analysis.mix.standardise import block_windows, common_series, standardise
from pipeline.model import FloatArray, SeriesKey, SeriesMatrix, StrataMatrix
from pipeline.model.units import HOUR_S
from pipeline.storage.interface import RowQuery, SeriesQuery, Store, StrataQuery
from pipeline.storage.view import StoreView

MARGIN_S = HOUR_S
"""About the width of the windows by which strata are counted."""


class ConstantMixStore(StoreView):
    """A Store whose gCPU series of one service have the mix of a span of time."""

    def __init__(
        self,
        store: Store,
        service: str,
        span: tuple[float, float],
        resolution_s: float,
        effects: Effects | None = None,
    ) -> None:
        super().__init__(store)
        self._service = service
        self._span = span
        self._resolution_s = resolution_s
        self._block_s = resolution_s * block_windows(round((span[1] - span[0]) / resolution_s))
        self._effects = effects or {}

    def series(self, query: SeriesQuery) -> SeriesMatrix:
        """Return series at a constant mix; see Store.series."""
        matrix = self._store.series(query)
        if query.source != "gcpu" or query.service != self._service or not matrix.names:
            return matrix
        mix, strata = self.fit(matrix, query.names)
        constant = matrix
        if mix is not None:
            constant = standardise(matrix, mix.series, mix.factors(strata.strata, strata.totals))
        return self.projected(constant, mix, strata, self._effects)

    def fit(
        self, matrix: SeriesMatrix, names: Sequence[SeriesKey] | None = None
    ) -> tuple[Mix | None, StrataMatrix]:
        """Return the differences of series between strata, and the totals of strata by the matrix's windows.

        Args:
            matrix: gCPU series of the service, as they were counted.
            names: The requested series; None for all.
        """
        end = matrix.start + len(matrix.totals) * matrix.resolution_s
        windows = self._store.counts(StrataQuery(self._service, matrix.start, end, matrix.resolution_s, []))
        if len(windows.strata) < 2:
            return None, windows
        requested = None if names is None else list(matrix.series)
        strata, blocks = self._counts(self._span, self._block_s, requested)
        return fit_mix(strata, blocks), windows

    def find_effects(
        self, mix: Mix | None, series: Sequence[SeriesKey], since: float
    ) -> tuple[Effects, list[ReleaseCosts]]:
        """Return the effects on series of releases that began after ``since``, and the comparisons made.

        Args:
            mix: Differences of series between strata.
            series: All series of the service.
            since: Epoch seconds.
        """
        by_series: dict[SeriesKey, list[ReleaseEffect]] = {}
        compared: list[ReleaseCosts] = []
        for rollout in self._rollouts:
            if rollout.start < since:
                continue
            strata, blocks = self._around(rollout)
            side = releases.side_by_side(strata, blocks, mix, self._starts, rollout, by_series)
            compared.append(ReleaseCosts(rollout, strata.series, *releases.compare(side)))
            for key, effect in compared[-1].changed(among=len(series)).items():
                by_series.setdefault(key, []).append(effect)
        return {key: tuple(effects) for key, effects in by_series.items()}, compared

    def projected(
        self, matrix: SeriesMatrix, mix: Mix | None, strata: StrataMatrix, effects: Effects
    ) -> SeriesMatrix:
        """Return series as if each release that changes them had reached all hosts with the first one."""
        if effects.keys().isdisjoint(matrix.series):
            return matrix
        rollouts = {rollout.release: rollout for rollout in self._rollouts}
        return releases.project(matrix, mix, strata, rollouts, self._starts, effects)

    @cached_property
    def _senders(self) -> StrataMatrix:
        """Totals of strata by the windows of the span."""
        return self._store.counts(StrataQuery(self._service, *self._span, self._resolution_s, []))

    @cached_property
    def _starts(self) -> dict[str, float]:
        """The time at which each release was first seen, or deployed."""
        rollouts = {rollout.release: rollout.start for rollout in self._rollouts}
        return releases.release_starts(self._senders) | rollouts

    @cached_property
    def _rollouts(self) -> list[Rollout]:
        """The releases that rolled out within the span, in order of time."""
        rollouts = releases.find_rollouts(self._senders, self._span[0])
        if not rollouts:
            return []
        changes = self._store.rows(RowQuery("changes", self._service, *self._span))
        deployed = [float(row["time"]) for row in changes]
        return releases.since_deployed(self._senders, rollouts, deployed)

    def _around(self, rollout: Rollout) -> tuple[StrataMatrix, FloatArray]:
        """Return counts by stratum around a rollout, and (series, windows) counts of the same time.

        Counts by stratum are of whole coarse windows, so that time begins a little earlier and ends later.
        """
        outer = (max(rollout.start - MARGIN_S, self._span[0]), min(rollout.end + MARGIN_S, self._span[1]))
        counts = self._store.counts(StrataQuery(self._service, *outer, self._resolution_s, None))
        first, last = counts.counted
        senders = self._store.counts(StrataQuery(self._service, first, last, self._resolution_s, []))
        matrix = self._store.series(SeriesQuery("gcpu", self._service, first, last, self._resolution_s))
        return common_series(counts, matrix, senders)

    def _counts(
        self,
        span: tuple[float, float],
        block_s: float,
        names: Sequence[SeriesKey] | None,
    ) -> tuple[StrataMatrix, FloatArray]:
        """Return counts of series by stratum, and by blocks of the same time: (series, blocks)."""
        strata = self._store.counts(StrataQuery(self._service, *span, block_s, names))
        return common_series(
            strata, self._store.series(SeriesQuery("gcpu", self._service, *span, block_s, names)), strata
        )
