"""The store as every stage that judges a scan reads it: at a constant mix, by present names.

The detector learns the renames from the scan's own data and the scan carries them, so every stage that judges
it, whenever it does, reads the same. Names stay in the store as they were counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pipeline.analysis.mix import request_decision, standardise
from pipeline.counting.names import PresentNames
from pipeline.counting.names.merging import merged_series, merged_stacks, symbol_key
from pipeline.model import Scan, SeriesKey, SeriesMatrix, StackMatrix
from pipeline.settings.workloads import Workload
from pipeline.stages.ablation import NOTHING, Without
from pipeline.stages.gather.constant_mix import ConstantMixStore
from pipeline.stages.gather.release_effects import effects_of
from pipeline.stages.gather.request_mix import RequestMixStore, RequestSpan
from pipeline.stages.gather.symbols import as_asked
from pipeline.storage.interface import Answer, CountQuery, RowQuery, SeriesQuery, Store
from pipeline.storage.view import StoreView


def by_present_names(store: Store, scan: Scan) -> Store:
    """Return the store as a scan is to see it; the store itself if nothing was renamed."""
    if not scan.renames:
        return store
    return RenamedStore(store, PresentNames({each.former: each.name for each in scan.renames}))


class RenamedStore(StoreView):
    """A Store whose subroutines have their present names; it passes on what holds none."""

    def __init__(self, store: Store, names: PresentNames) -> None:
        super().__init__(store)
        self._names = names

    def series(self, query: SeriesQuery) -> SeriesMatrix:
        """Return series by present names; see Store.series. Those asked for keep the names they have."""
        if query.source != "gcpu":
            return self._store.series(query)
        if query.names is None:
            return merged_series(self._store.series(query), self._names)
        present = [symbol_key(name, self._names) for name in query.names]
        counted = {
            SeriesKey(key.kind, name)
            for key in present
            for name in (key.name, *(self._names.former(key.name) if key.kind == "subroutine" else ()))
        }
        matrix = self._store.series(replace(query, names=sorted(counted)))
        return as_asked(merged_series(matrix, self._names), query.names, present)

    def counts(self, query: CountQuery[Answer]) -> Answer:
        """Return stacks by present names, and other counts as they are; see Store.counts."""
        counts = self._store.counts(query)
        return merged_stacks(counts, self._names) if isinstance(counts, StackMatrix) else counts

    def rows(self, query: RowQuery) -> list[dict[str, Any]]:
        """Return rows by present names; see Store.rows.

        A change may have modified what is called otherwise now; what was reported keeps its former name in
        ``stored_metric``, by which its id is made.
        """
        rows = self._store.rows(query)
        if query.columns and not {"subroutines", "metric"}.intersection(query.columns):
            return rows
        if query.table == "changes":
            return [{**row, "subroutines": [*map(self._names.symbol, row["subroutines"])]} for row in rows]
        if query.table == "memory":
            return [{"stored_metric": row["metric"], **row, "metric": self._present(row)} for row in rows]
        return rows

    def _present(self, row: Mapping[str, Any]) -> str:
        return symbol_key(SeriesKey(row["metric_kind"], row["metric"]), self._names).name


def as_scanned(store: Store, scan: Scan, workload: Workload | None, without: Without = NOTHING) -> Store:
    """Return the view of the store that every stage of a scan reads; an unknown workload has no mix."""
    if workload is not None and workload.series == "gcpu":
        resolution_s = scan.resolution_s or workload.resolution_s
        if standardise.KEY not in without:
            span = (scan.start, scan.end)
            store = ConstantMixStore(store, scan.service, span, resolution_s, effects_of(scan))
        if request_decision.KEY not in without:
            least = workload.threshold.absolute or 0.0
            requests = RequestSpan(
                scan.service, scan.start, scan.analysis_start, scan.end, resolution_s, least
            )
            store = RequestMixStore(store, requests)
    return by_present_names(store, scan)
