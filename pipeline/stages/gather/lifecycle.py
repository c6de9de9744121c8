"""The evidence about regressions that earlier scans reported.

All evidence is in the store, and a scan leaves out what it and later scans have reported. So a scan that is
repeated after a crash reports the same events, under the same ids.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from pipeline.analysis.dedup.evidence import TOLERANCE_WINDOWS
from pipeline.analysis.detect.matrix import select_series
from pipeline.analysis.feedback import follow_originals, merge_duplicates
from pipeline.analysis.lifecycle import (
    Courses,
    Fallback,
    LifecycleConfig,
    LifecycleEvidence,
    OpenRegression,
    Silenced,
    courses_of,
    courses_start,
    judged_since,
    largest_subroutines,
    share_factor,
)
from pipeline.analysis.rootcause import candidate_changes
from pipeline.messages.lifecycle import open_regression
from pipeline.model import Change, Scan, SeriesKey
from pipeline.model.errors import InvalidMessage
from pipeline.model.units import DAY_S
from pipeline.settings.workloads import Workload
from pipeline.stages.gather.scan_store import as_scanned
from pipeline.stages.gather.verdicts import is_resolved_with_original, states_before
from pipeline.storage.interface import RowQuery, SeriesQuery, Store

log = logging.getLogger(__name__)

FOLLOW_S = 30 * DAY_S
"""Seconds after its change point for which a regression is followed; series are stored for 45 days."""

_MOST_PEERS = 1000  # regressions whose peers are remembered


def lifecycle_config(workload: Workload) -> LifecycleConfig:
    """Return the lifecycle configuration of a workload."""
    return LifecycleConfig(workload.resolution_s, workload.historical_s, **workload.threshold.model_dump())


def gather_lifecycle(
    store: Store,
    scan: Scan,
    workload: Workload,
    config: LifecycleConfig,
    silenced: Sequence[Silenced] = (),
) -> LifecycleEvidence:
    """Return the regressions that a scan may update or resolve, and the courses of their own metrics.

    Silenced regressions are followed as if they had been reported. A regression that a verdict calls a
    duplicate is followed as part of its original.
    """
    followed = open_regressions(store, scan) if workload.follows else []
    if followed:
        states = states_before(store, scan)
        followed = [
            entry for entry in followed if not is_resolved_with_original(store, scan, entry.id, states)
        ]
        scan = follow_originals(scan, followed, states)
        followed = merge_duplicates(followed, states)
    own = [entry.regression for entry in silenced if entry.workload == scan.workload]
    silent = own if workload.follows else []
    if silent:
        followed = sorted([*silent, *followed], key=lambda entry: -entry.candidate.change_time)
    missing = {joined.regression for joined in scan.joined} - {entry.id for entry in followed}
    elsewhere = [
        entry
        for regression in sorted(missing)
        for entry in open_regressions(store, scan, regression=regression)
    ]
    elsewhere += [entry.regression for entry in silenced if entry.regression.id in missing]
    start = courses_start(scan, followed, config)
    if silent:
        start = scan.analysis_start if start is None else min(scan.analysis_start, start)
    courses = None if start is None else _courses(store, scan, workload, followed, start)
    return LifecycleEvidence(scan, tuple(followed), tuple(elsewhere), courses)


class FallbackContext:
    """Reader of what else may explain that a series has fallen back; remembers the peers of regressions."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._peers: dict[str, list[SeriesKey]] = {}

    def with_share_factors(
        self, found: Sequence[Fallback], scan: Scan, workload: Workload, config: LifecycleConfig
    ) -> list[Fallback]:
        """Return fallbacks with their share factors.

        Args:
            found: From ``find_fallbacks``.
            scan: The scan that found them.
            workload: The scan's workload.
            config: The workload's lifecycle configuration.
        """
        since = judged_since(scan, config)
        return [
            replace(fallback, share_factor=self._share_factor(scan, workload, fallback, since))
            for fallback in found
        ]

    def _share_factor(self, scan: Scan, workload: Workload, fallback: Fallback, since: float) -> float:
        """Return the factor by which all shares of a service have moved since before a regression.

        The factor is that of the subroutines that were the service's largest just before the regression.
        """
        if workload.series == "service":
            return 1.0
        store = as_scanned(self._store, scan, workload)
        regression, span_s = fallback.regression, scan.end - since
        before = (regression.candidate.change_time - span_s, regression.candidate.change_time)
        if regression.id in self._peers:
            then = store.series(
                SeriesQuery("gcpu", scan.service, *before, span_s, self._peers[regression.id])
            )
        else:
            whole = store.series(SeriesQuery("gcpu", scan.service, *before, span_s))
            if len(self._peers) >= _MOST_PEERS:
                self._peers.clear()
            self._peers[regression.id] = largest_subroutines(whole)
            then = select_series(whole, frozenset(self._peers[regression.id]))
        now = store.series(
            SeriesQuery("gcpu", scan.service, since, scan.end, span_s, self._peers[regression.id])
        )
        return share_factor(then, now)


def with_changes(
    confirmed: Sequence[Fallback], workload: Workload, changes: Callable[[], Sequence[Change]]
) -> list[Fallback]:
    """Return fallbacks with the changes deployed just before each.

    Args:
        confirmed: From ``confirm_fallbacks``.
        workload: The workload of the scan that found them.
        changes: Returns the service's changes of the last weeks; called only if there is a fallback.
    """
    lookback_s, tolerance_s = workload.lookback_s, TOLERANCE_WINDOWS * workload.resolution_s
    return [
        replace(
            fallback,
            changes=candidate_changes(
                changes(), fallback.time, lookback_s=lookback_s, tolerance_s=tolerance_s
            ),
        )
        for fallback in confirmed
    ]


def open_regressions(store: Store, scan: Scan, *, regression: str = "") -> list[OpenRegression]:
    """Return the regressions that earlier scans reported and no other scan resolved, newest first.

    The regressions are those of the scan's workload, or the one with the id ``regression``, of any workload.
    A regression that a later scan has resolved is left out too: no event may follow its resolution. A stored
    event that cannot be read, as another version wrote it, is left out and logged.
    """
    since = scan.end - FOLLOW_S
    reported_by = {"id": regression} if regression else {"workload": scan.workload}
    rows = store.rows(RowQuery("regressions", scan.service, since, scan.end, equal=reported_by))
    updates_of = {"regression": regression} if regression else reported_by
    updates = store.rows(RowQuery("updates", scan.service, since, equal=updates_of)) if rows else []
    this = (scan.workload, scan.end)
    resolved = {
        row["regression"]
        for row in updates
        if row["type"] == "resolved" and (row["workload"], row["time"]) != this
    }
    by_regression: dict[str, list[dict[str, Any]]] = {}
    for row in updates:
        if row["time"] < scan.end:
            by_regression.setdefault(row["regression"], []).append(row)
    # Of scans that end together, those of other workloads count as earlier, those of this one do not.
    rows = [
        row
        for row in rows
        if (row["detected_time"], row["workload"] == scan.workload) < (scan.end, True)
        and row["id"] not in resolved
    ]
    rows.sort(key=lambda row: (-row["detected_time"], row["id"]))
    open_events = []
    for row in rows:
        try:
            open_events.append(open_regression(row, by_regression.get(row["id"], ())))
        except InvalidMessage as error:
            log.warning("regression %s is not followed: its stored event is unreadable: %s", row["id"], error)
    return open_events


def _courses(
    store: Store, scan: Scan, workload: Workload, followed: Sequence[OpenRegression], start: float
) -> Courses:
    """Read the metrics of regressions in windows of which the last ends with the scan."""
    windows = math.ceil((scan.end - start) / workload.resolution_s - 1e-6)
    names = {regression.candidate.series for regression in followed}
    matrix = store.series(
        SeriesQuery(
            workload.series,
            scan.service,
            scan.end - windows * workload.resolution_s,
            scan.end,
            workload.resolution_s,
            sorted(names),
        )
    )
    return courses_of(matrix, scan.end, service_level=workload.series == "service")
