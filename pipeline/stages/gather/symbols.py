"""The store by symbols: counts under former names are read as if today's rules had named them.

An upgrade of the rules makes no series new: the history under former names continues in that of its symbol.
Aggregate notes in ``naming`` from when on a service is counted by which rules. What is asked of a time after
that is read as it is; what lies before is read whole and merged, as names can be turned into symbols and not
back. Where that shows that no name of a service changes, as most do not, a read of some series stays one of
these alone, and looks only at what came since under other names.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pipeline.analysis.detect.matrix import rows_by_series, select_rows, select_series
from pipeline.counting.names import Naming, Namings
from pipeline.counting.names.merging import merged_series, merged_stacks, merged_strata, symbol_key
from pipeline.model import SeriesKey, SeriesMatrix, StackMatrix, StrataMatrix
from pipeline.model.units import DAY_S
from pipeline.storage.interface import (
    Answer,
    CountQuery,
    RowQuery,
    SeriesQuery,
    StackQuery,
    Store,
    StrataQuery,
)
from pipeline.storage.view import StoreView

MARGIN_S = DAY_S
"""How long after the first counts by a service's naming workers of the version before may still count.

So long may counts under former names come late, too.
"""

_NAMED = {"changes": frozenset({"subroutines"}), "memory": frozenset({"metric"})}
"""Columns that hold names, by table."""


class SymbolStore(StoreView):
    """A Store whose names are symbols; queries without names pass through."""

    def __init__(self, store: Store, namings: Namings) -> None:
        super().__init__(store)
        self._namings = namings
        self._since: dict[str, float] = {}
        self._plain: dict[str, tuple[float, float]] = {}  # spans of services in which no name changes

    def series(self, query: SeriesQuery) -> SeriesMatrix:
        """Return series by symbols; see Store.series. Series of the query's ``names`` keep those names."""
        naming, names = self._namings.of(query.service), query.names
        if query.source != "gcpu" or (names is not None and not names):
            return self._store.series(query)
        symbols = None if names is None else [symbol_key(name, naming) for name in names]
        if self._is_uniform(query.service, query.start, naming) or (
            names is not None and self._is_plain(query, naming)
        ):
            matrix = self._store.series(replace(query, names=symbols))
        else:
            matrix = self._whole(query, naming)
        return matrix if names is None or symbols is None else as_asked(matrix, names, symbols)

    def counts(self, query: CountQuery[Answer]) -> Answer:
        """Return counts of stacks and strata by symbols, others as they are; see Store.counts.

        Series whose counts by stratum are asked for keep the names they have.
        """
        if isinstance(query, StackQuery):
            return self._stacks(query)
        if isinstance(query, StrataQuery):
            return self._strata(query)
        return self._store.counts(query)

    def _strata(self, query: StrataQuery) -> StrataMatrix:
        naming = self._namings.of(query.service)
        if self._is_uniform(query.service, query.start, naming):
            symbols = None if query.names is None else [symbol_key(name, naming) for name in query.names]
            return self._store.counts(replace(query, names=symbols))
        return merged_strata(self._store.counts(replace(query, names=None)), naming)

    def _stacks(self, query: StackQuery) -> StackMatrix:
        matrix = self._store.counts(query)
        naming = self._namings.of(query.service)
        if self._is_uniform(query.service, min(query.before[0], query.after[0]), naming):
            return matrix
        return merged_stacks(matrix, naming)

    def rows(self, query: RowQuery) -> list[dict[str, Any]]:
        """Return rows by symbols; see Store.rows.

        The subroutines of ``changes`` are symbols, and so is the ``metric`` of ``memory``, whose spelling
        in the store is in ``stored_metric``. Where these are chosen the whole row is read.
        """
        if query.columns and not _NAMED.get(query.table, frozenset()).intersection(query.columns):
            return self._store.rows(query)
        rows = self._store.rows(replace(query, columns=()))
        if query.table == "changes":
            return [
                {**row, "subroutines": [*self._namings.of(row["service"]).symbols(row["subroutines"])]}
                for row in rows
            ]
        if query.table == "memory":
            return [{**row, "metric": self._symbol_of(row), "stored_metric": row["metric"]} for row in rows]
        return rows

    def _symbol_of(self, row: Mapping[str, Any]) -> str:
        return symbol_key(SeriesKey(row["metric_kind"], row["metric"]), self._namings.of(row["service"])).name

    def _is_uniform(self, service: str, start: float, naming: Naming) -> bool:
        """Return whether all that was counted of a service since a time has the names of its naming."""
        if not naming.rules and not naming.patterns:
            return True
        if service not in self._since:
            since = _naming_since(self._store, service, naming.version)
            if since == math.inf:  # it may be noted at any moment
                return False
            self._since[service] = since
        return start >= self._since[service]

    def _is_plain(self, query: SeriesQuery, naming: Naming) -> bool:
        """Return whether no name of a service changes in a span, the most of which was read whole before."""
        service = query.service
        first, last = self._plain.get(service, (math.inf, -math.inf))
        if not first <= query.start <= last:
            return False
        if query.end > last:
            self._whole(replace(query, start=max(first, last - MARGIN_S)), naming)
            if service in self._plain:
                self._plain[service] = (first, query.end)
        return service in self._plain

    def _whole(self, query: SeriesQuery, naming: Naming) -> SeriesMatrix:
        """Read all series of a service by symbols, and note whether any name changed."""
        matrix = self._store.series(replace(query, names=None))
        merged = merged_series(matrix, naming)
        if merged is matrix:
            self._plain[query.service] = (query.start, query.end)
        else:
            self._plain.pop(query.service, None)
        return merged


def as_asked(matrix: SeriesMatrix, names: Sequence[SeriesKey], symbols: Sequence[SeriesKey]) -> SeriesMatrix:
    """Return the requested series under the names of the request, sorted by them."""
    if list(names) == list(symbols):
        return select_series(matrix, frozenset(symbols))
    row_of = rows_by_series(matrix)
    pairs = sorted(dict(zip(names, symbols, strict=True)).items())
    present = [(name, row_of[symbol]) for name, symbol in pairs if symbol in row_of]
    selected = select_rows(matrix, [row for _, row in present])
    return replace(
        selected,
        kinds=tuple(kind for (kind, _), _ in present),
        names=tuple(name for (_, name), _ in present),
    )


def _naming_since(store: Store, service: str, version: str) -> float:
    """Return the time since which only ``version`` of names counts a service; infinite without one."""
    since = math.inf
    for row in store.rows(RowQuery("naming", service)):
        if row["version"] != version:
            since = math.inf
        elif since == math.inf:
            since = row["time"] + MARGIN_S if row["before"] else -math.inf
    return since


def is_noted(store: Store, service: str, version: str) -> bool:
    """Return whether a version of names is noted as the latest by which a service is counted."""
    rows = store.rows(RowQuery("naming", service))
    return bool(rows) and rows[-1]["version"] == version


def was_counted(store: Store, stream: str, service: str) -> bool:
    """Return whether anything was counted or scanned of a service before."""
    counted = store.extents(["totals"], stream, service)["totals"]
    return bool(counted) or bool(store.rows(RowQuery("scans", service)))
