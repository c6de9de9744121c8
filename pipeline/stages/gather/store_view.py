"""A view of a store: what it reads otherwise a view defines, all else it passes on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pipeline.counting.quota.limits import Usage
from pipeline.model import RequestPeriods, SeriesKey, StackMatrix, StrataMatrix
from pipeline.storage.interface import CountTable, Extents, RowTable, Store, StrataSides, Table


class StoreView:
    """The verbs of a Store as they are, but for ``series``, which every view defines."""

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
        """Add rows as they are; see Store.insert."""
        self._store.insert(table, columns, token=token, asked_at=asked_at)

    def extents(self, table: CountTable, stream: str, service: str | None = None) -> Extents:
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

    def strata_width(self, service: str, end: float) -> float:
        """Return how wide windows of counts by stratum are; see Store.strata_width."""
        return self._store.strata_width(service, end)

    def roll_up(self, service: str, start: float, end: float, resolution_s: float) -> None:
        """Keep counts as they were counted; see Store.roll_up."""
        self._store.roll_up(service, start, end, resolution_s)

    def stacks(
        self,
        service: str,
        before: tuple[float, float],
        after: tuple[float, float],
        strata: StrataSides | None = None,
    ) -> StackMatrix:
        """Return stack counts of two spans; see Store.stacks."""
        return self._store.stacks(service, before, after, strata)

    def requests(
        self, service: str, start: float, end: float, releases: Sequence[str] | None = None, step_s: float = 0
    ) -> RequestPeriods:
        """Return a service's requests; see Store.requests."""
        return self._store.requests(service, start, end, releases, step_s=step_s)

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
        """Return rows; see Store.rows."""
        return self._store.rows(table, service, start, end, id_prefix=id_prefix, columns=columns, **equal)

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
