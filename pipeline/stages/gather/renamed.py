"""The store by present names: what was renamed within a scan has the history of its former names.

The detector learns the renames from the scan's own data and the scan carries them, so every stage that judges
it, whenever it does, reads the same. Names stay in the store as they were counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.counting.names import PresentNames
from pipeline.counting.names.merging import merged_series, merged_stacks, symbol_key
from pipeline.model import Scan, SeriesKey, SeriesMatrix, StackMatrix
from pipeline.stages.gather.store_view import StoreView
from pipeline.stages.gather.symbols import as_asked
from pipeline.storage.interface import RowTable, SeriesSource, Store, StrataSides


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

    def series(
        self,
        source: SeriesSource,
        service: str,
        start: float,
        end: float,
        resolution_s: float,
        names: Sequence[SeriesKey] | None = None,
    ) -> SeriesMatrix:
        """Return series by present names; see Store.series. Those asked for keep the names they have."""
        span = (service, start, end, resolution_s)
        if source != "gcpu" or names is None:
            matrix = self._store.series(source, *span, names)
            return merged_series(matrix, self._names) if source == "gcpu" else matrix
        present = [symbol_key(name, self._names) for name in names]
        counted = {
            SeriesKey(key.kind, name)
            for key in present
            for name in (key.name, *(self._names.former(key.name) if key.kind == "subroutine" else ()))
        }
        matrix = self._store.series(source, *span, sorted(counted))
        return as_asked(merged_series(matrix, self._names), names, present)

    def stacks(
        self,
        service: str,
        before: tuple[float, float],
        after: tuple[float, float],
        strata: StrataSides | None = None,
    ) -> StackMatrix:
        """Return stacks by present names; see Store.stacks."""
        return merged_stacks(self._store.stacks(service, before, after, strata), self._names)

    def rows(
        self,
        table: RowTable,
        service: str | None,
        start: float,
        end: float,
        *,
        id_prefix: str = "",
        columns: Sequence[str] = (),
        **equal: str,
    ) -> list[dict[str, Any]]:
        """Return rows by present names; see Store.rows.

        A change may have modified what is called otherwise now; what was reported keeps its former name in
        ``stored_metric``, by which its id is made.
        """
        rows = self._store.rows(table, service, start, end, id_prefix=id_prefix, columns=columns, **equal)
        if columns and not {"subroutines", "metric"}.intersection(columns):
            return rows
        if table == "changes":
            return [{**row, "subroutines": [*map(self._names.symbol, row["subroutines"])]} for row in rows]
        if table == "memory":
            return [{"stored_metric": row["metric"], **row, "metric": self._present(row)} for row in rows]
        return rows

    def _present(self, row: Mapping[str, Any]) -> str:
        return symbol_key(SeriesKey(row["metric_kind"], row["metric"]), self._names).name
