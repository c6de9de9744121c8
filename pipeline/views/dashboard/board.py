"""Data of lists and states, kept in memory and refreshed in the background.

So the first byte of a list waits for no query: a page is a pure function of a Snapshot. Each event is read
once, in slices; small data that change, such as verdicts, are read anew each time.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pipeline.analysis.feedback import confirmed_causes, latest_verdicts
from pipeline.messages.fields import EARLIEST_S, LATEST_S
from pipeline.model import Verdict
from pipeline.model.clock import Clock
from pipeline.model.errors import ConfigError
from pipeline.model.units import DAY_S, HOUR_S
from pipeline.settings.workloads import Workload
from pipeline.stages.gather.verdicts import gather_verdicts
from pipeline.storage.interface import RowQuery, SeriesQuery, Store
from pipeline.views.dashboard.item import COLUMNS, OPEN, Item, item_of, with_course
from pipeline.views.dashboard.service_state import ServiceState, service_state
from pipeline.views.report.detectability import outlooks_of

MOST_ITEMS = 50_000
"""Largest number of regressions in memory, the latest; each takes about a kilobyte."""

SLICE = 500
"""Events that one query reads."""

SERVICES_S = 60.0
"""Interval at which the states of services are refreshed."""

MOST_SERIES = 5_000
"""Most series of a service whose detectability is computed ahead; for others their page asks for it."""

DETECTABLE_S = HOUR_S
"""Interval at which detectability is computed anew."""

_EVER = (None, EARLIEST_S, LATEST_S)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All regressions, the latest detected first, and all services by name."""

    items: tuple[Item, ...] = ()
    services: tuple[ServiceState, ...] = ()
    by_id: Mapping[str, Item] = field(default_factory=dict, compare=False)
    version: int = 0

    def open_items(self) -> dict[str, int]:
        """Return how many open regressions each service has."""
        counts = dict.fromkeys((service.name for service in self.services), 0)
        for item in self.items:
            if item.state in OPEN:
                counts[item.service] = counts.get(item.service, 0) + 1
        return counts


class Board:
    """Keeps a Snapshot of a store; ``refresh`` is called by one thread at a time, anybody reads."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        *,
        most: int = MOST_ITEMS,
        workloads: Mapping[str, Workload] | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._most = most
        self._reported: dict[str, Item] = {}
        self._said: dict[tuple[str, bool], Verdict] = {}  # those that the store may lack yet, without causes
        self._services: tuple[ServiceState, ...] = ()
        self._services_at = float("-inf")
        self._workloads = workloads or {}
        self._detectable: dict[str, tuple[float, float | None]] = {}  # by service: time of its computation
        self._refreshing = threading.Lock()
        self.snapshot = Snapshot()

    def refresh(self) -> Snapshot:
        """Read new data, and return the snapshot.

        Raises:
            StoreUnavailable: the store did not answer; the snapshot stays as it is.
        """
        with self._refreshing:
            self._read_events()
            updates = self._store.rows(
                RowQuery("updates", *_EVER, columns=("regression", "type", "level", "share_remaining"))
            )
            verdicts = (*gather_verdicts(self._store), *self._said.values())
            if self._clock() >= self._services_at + SERVICES_S:
                self._services = tuple(self._read_services())
                self._services_at = self._clock()
            self._work_out()
            self._keep(
                with_course(
                    self._reported.values(), updates, latest_verdicts(verdicts), confirmed_causes(verdicts)
                )
            )
            return self.snapshot

    def say(self, verdicts: Iterable[Verdict]) -> None:
        """Show verdicts at once; the pipeline will bring them into the store."""
        changed: dict[str, dict[str, Any]] = {}
        for verdict in verdicts:
            is_cause = verdict.verdict == "cause"
            self._said[verdict.event, is_cause] = verdict
            own = {"cause": verdict.subject} if is_cause else {"verdict": verdict}
            changed.setdefault(verdict.event, {}).update(own)
        items = self.snapshot.items
        self._keep(tuple(replace(item, **changed[item.id]) if item.id in changed else item for item in items))

    def _keep(self, items: tuple[Item, ...]) -> None:
        last = self.snapshot
        if items == last.items and self._services == last.services:
            return
        by_id = {item.id: item for item in items}
        self.snapshot = Snapshot(items, self._services, by_id, last.version + 1)

    def _work_out(self) -> None:
        """Compute the detectability of one service: one without a result, or the one with the oldest."""
        now = self._clock()
        ages = {
            service.name: now - self._detectable.get(service.name, (-np.inf, None))[0]
            for service in self._services
        }
        for service in sorted(self._services, key=lambda service: -ages[service.name]):
            workloads = [self._workloads.get(workload.name) for workload in service.workloads]
            fitting = [workload for workload in workloads if workload and workload.series == "gcpu"]
            if not fitting or service.series > MOST_SERIES or service.last_scan is None:
                continue
            if ages[service.name] >= DETECTABLE_S:
                shortest = min(fitting, key=lambda workload: workload.analysis_s)
                self._detectable[service.name] = (
                    now,
                    _typical(self._store, service.name, shortest, service.last_scan),
                )
            break
        self._services = tuple(
            replace(service, detectable=self._detectable.get(service.name, (0.0, None))[1])
            for service in self._services
        )

    def _read_events(self) -> None:
        there = self._store.rows(RowQuery("regressions", *_EVER, columns=("id", "detected_time")))
        there.sort(key=lambda row: row["detected_time"])
        wanted = {row["id"]: row["time"] for row in there[-self._most :]}
        self._reported = {key: item for key, item in self._reported.items() if key in wanted}
        times = sorted(time for key, time in wanted.items() if key not in self._reported)
        for first in range(0, len(times), SLICE):
            start, last = times[first], times[min(first + SLICE, len(times)) - 1]
            rows = self._store.rows(RowQuery("regressions", None, start, last + 0.001, columns=COLUMNS))
            self._reported |= {row["id"]: item_of(row) for row in rows if row["id"] in wanted}

    def _read_services(self) -> Iterator[ServiceState]:
        names = {row["service"] for row in self._store.rows(RowQuery("naming", *_EVER, columns=("service",)))}
        now = self._clock()
        recent = (now - 2 * DAY_S, now + DAY_S)
        scans = _by_service(self._store.rows(RowQuery("scans", None, *recent)))
        unjudged = _by_service(self._store.rows(RowQuery("unjudged", None, *recent)))
        for name in sorted({*names, *scans}):
            made: Sequence[Mapping[str, Any]] = scans.get(name, [])
            lacking: Sequence[Mapping[str, Any]] = unjudged.get(name, [])
            if not made:  # silent for days, or not scanned yet
                made = self._store.rows(RowQuery("scans", name))
                lacking = self._store.rows(RowQuery("unjudged", name))
            end = made[-1]["time"] if made else now
            counted = self._store.series(SeriesQuery("gcpu", name, end - HOUR_S, end, HOUR_S, []))
            yield service_state(name, made, lacking, float(counted.totals.sum()) / HOUR_S)


def _typical(store: Store, service: str, workload: Workload, end: float) -> float | None:
    try:
        _, outlooks = outlooks_of(store, service, workload, end)
    except ConfigError:  # nothing was counted of it any more
        return None
    return next(outlook.after_analysis for outlook in outlooks if outlook.subroutine == "typical")


def _by_service(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    rows_by_service: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        rows_by_service.setdefault(row["service"], []).append(row)
    return rows_by_service
