"""A view of a store: what it reads otherwise a view defines, all else it passes on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pipeline.model import SeriesKey, StrataMatrix
from pipeline.quota.limits import Usage
from pipeline.storage.interface import CountTable, Extent, Store, Table


class StoreView:
    """The verbs of a Store that hold no names."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def insert(self, table: Table, columns: Mapping[str, Sequence[Any]], *, token: str = "") -> None:
        """Add rows as they are; see Store.insert."""
        self._store.insert(table, columns, token=token)

    def extents(
        self, table: CountTable, stream: str, service: str | None = None
    ) -> dict[tuple[str, int], Extent]:
        """Return how far rows go in a table; see Store.extents."""
        return self._store.extents(table, stream, service)

    def strata(
        self,
        service: str,
        start: float,
        end: float,
        resolution_s: float,
        names: Sequence[SeriesKey] | None = None,
    ) -> StrataMatrix:
        """Return who sent a service's samples; see Store.strata."""
        return self._store.strata(service, start, end, resolution_s, names)

    def usage(
        self,
        stream: str,
        topic: str,
        partition: int,
        services: Iterable[str],
        span: tuple[float, float],
        period_s: float,
    ) -> dict[tuple[str, float], Usage]:
        """Return what was counted of services; see Store.usage."""
        return self._store.usage(stream, topic, partition, services, span, period_s)
