"""The store at a constant mix: series as if the senders of their samples had stayed in one mix.

What strata differ in is learnt over the span of a scan, so every stage that judges the scan, whenever it
does, reads the same. Stacks stay as they were counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pipeline.model import SeriesKey, SeriesMatrix, StackMatrix, StrataMatrix
from pipeline.stages.gather.store_view import StoreView
from pipeline.storage.interface import RowTable, SeriesSource, Store
from pipeline.strata.mix import Mix, fit_mix
from pipeline.strata.standardise import block_windows, standardise


class ConstantMixStore(StoreView):
    """A Store whose gCPU series of one service have the mix of a span of time."""

    def __init__(self, store: Store, service: str, span: tuple[float, float], resolution_s: float) -> None:
        super().__init__(store)
        self._service = service
        self._span = span
        self._block_s = resolution_s * block_windows(round((span[1] - span[0]) / resolution_s))

    def series(
        self,
        source: SeriesSource,
        service: str,
        start: float,
        end: float,
        resolution_s: float,
        names: Sequence[SeriesKey] | None = None,
    ) -> SeriesMatrix:
        """Return series at a constant mix; see Store.series."""
        matrix = self._store.series(source, service, start, end, resolution_s, names)
        if source != "gcpu" or service != self._service or not matrix.names:
            return matrix
        mix, strata = self.fit(matrix, names)
        return matrix if mix is None else standardise(matrix, mix, strata)

    def fit(
        self, matrix: SeriesMatrix, names: Sequence[SeriesKey] | None = None
    ) -> tuple[Mix | None, StrataMatrix]:
        """Return how the series of a matrix differ between strata, and totals of these by its windows.

        Args:
            matrix: gCPU series of the service, as they were counted.
            names: Those that were asked for; None if all were.
        """
        end = matrix.start + len(matrix.totals) * matrix.resolution_s
        windows = self._store.strata(self._service, matrix.start, end, matrix.resolution_s, [])
        if len(windows.strata) < 2:
            return None, windows
        asked = None if names is None else list(matrix.series)
        strata = self._store.strata(self._service, *self._span, self._block_s, asked)
        blocks = self._store.series("gcpu", self._service, *self._span, self._block_s, strata.series)
        rows = {key: row for row, key in enumerate(blocks.series)}
        kept = [row for row, key in enumerate(strata.series) if key in rows]
        strata = replace(
            strata, series=tuple(strata.series[row] for row in kept), samples=strata.samples[kept]
        )
        return fit_mix(strata, blocks.samples[[rows[key] for key in strata.series]]), windows

    def stacks(self, service: str, before: tuple[float, float], after: tuple[float, float]) -> StackMatrix:
        """Return stacks as they were counted; see Store.stacks."""
        return self._store.stacks(service, before, after)

    def rows(
        self,
        table: RowTable,
        service: str | None,
        start: float,
        end: float,
        *,
        id_prefix: str = "",
        **equal: str,
    ) -> list[dict[str, Any]]:
        """Return rows as they are; see Store.rows."""
        return self._store.rows(table, service, start, end, id_prefix=id_prefix, **equal)
