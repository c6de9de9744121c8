"""The base of views: a store that reads from another one, with something changed on the way."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pipeline.model import SeriesMatrix
from pipeline.storage.interface import (
    Answer,
    CountQuery,
    CountTable,
    Extents,
    RowQuery,
    SeriesQuery,
    Store,
    Table,
)


class StoreView:
    """A Store that passes every call on to another one; a view overrides the verbs that it changes."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def insert(
        self,
        table: Table,
        columns: Mapping[str, Sequence[Any]],
        *,
        token: str = "",
        asked_at: float | None = None,
    ) -> None:
        """Add rows; see Store.insert."""
        self._store.insert(table, columns, token=token, asked_at=asked_at)

    def extents(
        self, tables: Collection[CountTable], stream: str, service: str | None = None
    ) -> dict[CountTable, Extents]:
        """Return how far rows go; see Store.extents."""
        return self._store.extents(tables, stream, service)

    def rows(self, query: RowQuery) -> list[dict[str, Any]]:
        """Return rows; see Store.rows."""
        return self._store.rows(query)

    def series(self, query: SeriesQuery) -> SeriesMatrix:
        """Return series; see Store.series."""
        return self._store.series(query)

    def counts(self, query: CountQuery[Answer]) -> Answer:
        """Return counts; see Store.counts."""
        return self._store.counts(query)
