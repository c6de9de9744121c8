"""What a scan has to know of the regressions that earlier scans reported.

All of it is in the store, and a scan leaves out what it and later scans have reported; so a scan that comes
again after a crash reports the same again, under the same ids.
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
"""How long after its change point a regression is followed; the series of 45 days ago are gone."""

_MOST_PEERS = 1000  # regressions whose peers are remembered


def lifecycle_config(workload: Workload) -> LifecycleConfig:
    """Return what a workload says of lifecycle."""
    return LifecycleConfig(workload.resolution_s, workload.historical_s, **workload.threshold.model_dump())


def gather_lifecycle(
    store: Store,
    scan: Scan,
    workload: Workload,
    config: LifecycleConfig,
    silenced: Sequence[Silenced] = (),
) -> LifecycleEvidence:
    """Return the regressions that a scan may have news of, and the courses of their own metrics.

    Those that silences keep from being reported are followed as if they had been. What somebody called a
    duplicate is followed as part of the other.
    """
    followed = open_regressions(store, scan) if workload.follows else []
    if followed:
        states = states_before(store, scan)
        followed = [one for one in followed if not is_resolved_with_original(store, scan, one.id, states)]
        scan = follow_originals(scan, followed, states)
        followed = merge_duplicates(followed, states)
    own = [one.regression for one in silenced if one.workload == scan.workload]
    silent = own if workload.follows else []
    if silent:
        followed = sorted([*silent, *followed], key=lambda one: -one.candidate.change_time)
    missing = {joined.regression for joined in scan.joined} - {one.id for one in followed}
    elsewhere = [
        one for regression in sorted(missing) for one in open_regressions(store, scan, regression=regression)
    ]
    elsewhere += [one.regression for one in silenced if one.regression.id in missing]
    start = courses_start(scan, followed, config)
    if silent:
        start = scan.analysis_start if start is None else min(scan.analysis_start, start)
    courses = None if start is None else _courses(store, scan, workload, followed, start)
    return LifecycleEvidence(scan, tuple(followed), tuple(elsewhere), courses)


class FallbackContext:
    """Reads what else may explain that a series has fallen back. It keeps only what it would read again."""

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
            workload: How it was scanned.
            config: What that says of lifecycle.
        """
        since = judged_since(scan, config)
        return [replace(one, share_factor=self._share_factor(scan, workload, one, since)) for one in found]

    def _share_factor(self, scan: Scan, workload: Workload, fallback: Fallback, since: float) -> float:
        """Return the factor by which all shares of a service have moved since before a regression.

        It is that of the service's largest subroutines, as they were in a span just before the regression.
        """
        if workload.series == "service":
            return 1.0
        store = as_scanned(self._store, scan, workload)
        one, span_s = fallback.regression, scan.end - since
        before = (one.candidate.change_time - span_s, one.candidate.change_time)
        if one.id in self._peers:
            then = store.series(SeriesQuery("gcpu", scan.service, *before, span_s, self._peers[one.id]))
        else:
            whole = store.series(SeriesQuery("gcpu", scan.service, *before, span_s))
            if len(self._peers) >= _MOST_PEERS:
                self._peers.clear()
            self._peers[one.id] = largest_subroutines(whole)
            then = select_series(whole, frozenset(self._peers[one.id]))
        now = store.series(SeriesQuery("gcpu", scan.service, since, scan.end, span_s, self._peers[one.id]))
        return share_factor(then, now)


def with_changes(
    confirmed: Sequence[Fallback], workload: Workload, changes: Callable[[], Sequence[Change]]
) -> list[Fallback]:
    """Return fallbacks with the changes deployed just before each.

    Args:
        confirmed: From ``confirm_fallbacks``.
        workload: How the scan that found them was made.
        changes: Returns the service's changes of the last weeks; called only if there is need.
    """
    lookback_s, tolerance_s = workload.lookback_s, TOLERANCE_WINDOWS * workload.resolution_s
    return [
        replace(
            one,
            changes=candidate_changes(changes(), one.time, lookback_s=lookback_s, tolerance_s=tolerance_s),
        )
        for one in confirmed
    ]


def open_regressions(store: Store, scan: Scan, *, regression: str = "") -> list[OpenRegression]:
    """Return the regressions that scans before this one reported and that none resolved, newest first.

    They are those of the scan's workload, or the one of the id given, whatever its workload. A scan that is
    handled late may find that a later one has resolved a regression: nothing comes after that. What cannot be
    read, as it was written by another version, is left out and logged.
    """
    since = scan.end - FOLLOW_S
    whose = {"id": regression} if regression else {"workload": scan.workload}
    rows = store.rows(RowQuery("regressions", scan.service, since, scan.end, equal=whose))
    of_them = {"regression": regression} if regression else whose
    updates = store.rows(RowQuery("updates", scan.service, since, equal=of_them)) if rows else []
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
    # Of scans of two workloads that end together, the later one knows what the earlier one reported.
    rows = [
        row
        for row in rows
        if (row["detected_time"], row["workload"] == scan.workload) < (scan.end, True)
        and row["id"] not in resolved
    ]
    rows.sort(key=lambda row: (-row["detected_time"], row["id"]))
    found = []
    for row in rows:
        try:
            found.append(open_regression(row, by_regression.get(row["id"], ())))
        except InvalidMessage as error:
            log.warning("regression %s is not followed: its stored event is unreadable: %s", row["id"], error)
    return found


def _courses(
    store: Store, scan: Scan, workload: Workload, followed: Sequence[OpenRegression], start: float
) -> Courses:
    """Read the own metrics of regressions by windows that end with the scan."""
    windows = math.ceil((scan.end - start) / workload.resolution_s - 1e-6)
    names = {one.candidate.series for one in followed}
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
