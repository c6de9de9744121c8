"""Follows what was reported: which regressions have gone, which have grown, as a scan sees it.

All that is known of them is in the store, and a scan leaves out what it and later scans have told; so a
scan that comes again after a crash tells the same again, under the same ids.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import orjson

from pipeline.codec.events import update_id
from pipeline.codec.ledger import candidate_of_event
from pipeline.detect.expected import values_and_weights
from pipeline.detect.seasonal.daily import DAY_S
from pipeline.detect.share_normalisation import CompositionConfig, with_dilution
from pipeline.errors import InvalidMessage
from pipeline.lifecycle.changes import (
    OpenRegression,
    ReturnConfig,
    Series,
    Update,
    find_drop,
    fixing_changes,
    has_grown,
    judge_returned,
    reference_shift_s,
    span_s,
)
from pipeline.model import Candidate, FloatArray, Scan, SeriesMatrix
from pipeline.stages.gather.evidence import changes_before, rows_of_series
from pipeline.storage.interface import SeriesName, Store
from pipeline.workloads import Workload

log = logging.getLogger(__name__)

_MOST_PEERS = 1000  # regressions whose peers are remembered

Dilution = Callable[[Scan, Workload, OpenRegression, float], float]

FOLLOW_S = 30 * DAY_S
"""How long after its change point a regression is followed; the series of 45 days ago are gone."""


class Follower:
    """Tells what has become of regressions. It remembers only what it would read again."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._peers: dict[str, list[SeriesName]] = {}

    def follow(self, scan: Scan, workload: Workload) -> list[Update]:
        """Return what has become of the regressions that earlier scans of this workload reported."""
        found = open_regressions(self._store, scan)
        if not found and not scan.joined:
            return []
        resolved = _resolved(self._store, scan, workload, found, self._dilution)
        gone = {update.regression.id for update in resolved}
        left = [one for one in found if one.id not in gone]
        grown = _grown(self._store, scan, workload, left)
        others = self._open_elsewhere(scan, found)
        return [*_with_joined(scan, [*left, *others], grown), *resolved]

    def _open_elsewhere(self, scan: Scan, found: Sequence[OpenRegression]) -> list[OpenRegression]:
        """Return the regressions of other workloads that candidates of a scan belong to."""
        missing = {joined.regression for joined in scan.joined} - {one.id for one in found}
        return [
            one
            for regression in sorted(missing)
            for one in open_regressions(self._store, scan, regression=regression)
        ]

    def _dilution(self, scan: Scan, workload: Workload, one: OpenRegression, first: float) -> float:
        """Return the factor by which all shares of a service have moved since before a regression.

        It is that of the service's largest subroutines, as they were in a span just before the regression.
        """
        span_s, change_time = scan.end - first, one.candidate.change_time
        if workload.series == "service":
            return 1.0
        before = (change_time - span_s, change_time)
        if one.id not in self._peers:
            if len(self._peers) >= _MOST_PEERS:
                self._peers.clear()
            matrix = self._store.series("gcpu", scan.service, *before, span_s)
            self._peers[one.id] = _largest(matrix)
        peers = self._peers[one.id]
        then, now = (
            self._store.series("gcpu", scan.service, *span, span_s, peers)
            for span in (before, (first, scan.end))
        )
        return _common_factor(then, now)


def _largest(matrix: SeriesMatrix) -> list[SeriesName]:
    """Return the subroutines with most samples."""
    order = np.argsort(-matrix.samples[:, 0], kind="stable").tolist()
    names = [(matrix.kinds[i], matrix.names[i]) for i in order if matrix.kinds[i] == "subroutine"]
    return names[: CompositionConfig().most_series]


def _common_factor(then: SeriesMatrix, now: SeriesMatrix) -> float:
    """Return what the shares of most series were multiplied by; 1 where too few are known."""
    columns: dict[SeriesName, list[float]] = {}
    for place, matrix in enumerate((then, now)):
        for kind, name, count in zip(matrix.kinds, matrix.names, matrix.samples[:, 0].tolist(), strict=True):
            columns.setdefault((kind, name), [0.0, 0.0])[place] = count
    both = replace(
        then,
        kinds=tuple("subroutine" for _ in columns),
        names=tuple(name for _, name in columns),
        samples=np.array(list(columns.values())).reshape(len(columns), 2),
        totals=np.concatenate([then.totals, now.totals]),
    )
    dilution = with_dilution(both, history=1).dilution
    return 1.0 if dilution is None else float(dilution[1])


def open_regressions(store: Store, scan: Scan, *, regression: str = "") -> list[OpenRegression]:
    """Return the regressions that scans before this one reported and did not resolve, newest first.

    They are those of the scan's workload, or the one of the id given, whatever its workload. What cannot be
    read, as it was written by another version, is left out and logged.
    """
    span = (scan.end - FOLLOW_S, scan.end)
    if regression:
        rows = store.rows("regressions", scan.service, *span, id=regression)
        updates = store.rows("updates", scan.service, *span, regression=regression)
    else:
        rows = store.rows("regressions", scan.service, *span, workload=scan.workload)
        updates = store.rows("updates", scan.service, *span, workload=scan.workload) if rows else []
    rows = [row for row in rows if row["detected_time"] < scan.end]
    resolved = {row["regression"] for row in updates if row["type"] == "resolved"}
    by_regression: dict[str, list[dict[str, Any]]] = {}
    for row in updates:
        if row["type"] != "resolved":
            by_regression.setdefault(row["regression"], []).append(row)
    rows = [row for row in rows if row["id"] not in resolved]
    rows.sort(key=lambda row: (-row["detected_time"], row["id"]))
    found = []
    for row in rows:
        try:
            found.append(_open_regression(row, by_regression.get(row["id"], ())))
        except (ValueError, KeyError, TypeError, InvalidMessage) as error:
            log.warning("regression %s is not followed: its stored event is unreadable: %s", row["id"], error)
    return found


def update_columns(updates: Sequence[Update], events: Sequence[bytes]) -> dict[str, list[Any]]:
    """Return updates and their events as columns of the table ``updates``."""
    reported = [update.regression.candidate for update in updates]
    return {
        "id": [update_id(update) for update in updates],
        "type": [update.kind for update in updates],
        "regression": [update.regression.id for update in updates],
        "service": [update.service for update in updates],
        "workload": [update.workload for update in updates],
        "metric_kind": [candidate.metric_kind for candidate in reported],
        "metric": [candidate.metric for candidate in reported],
        "time": [update.time for update in updates],
        "before": [candidate.before for candidate in reported],
        "after": [candidate.after for candidate in reported],
        "level": [update.level for update in updates],
        "share_remaining": [update.share_remaining for update in updates],
        "event": [event.decode() for event in events],
    }


def _open_regression(row: Mapping[str, Any], updates: Sequence[Mapping[str, Any]]) -> OpenRegression:
    """Return a regression with what updates told of it: later levels, and the series that joined it."""
    candidate = candidate_of_event(orjson.loads(row["event"])["data"])
    told: dict[Series, float] = {}
    joined: list[Candidate] = []
    for update in updates:
        data = orjson.loads(update["event"])["data"]
        told[(update["metric_kind"], update["metric"])] = update["level"]
        if grown := data.get("grown"):
            told[(grown["metric_kind"], grown["metric"])] = grown["after"]
        defaults = {"kind": data["kind"], "p_value": 0.0}
        joined += [candidate_of_event({**defaults, **member}) for member in data.get("joined", ())]
    group = (*candidate.group, *joined)
    return OpenRegression(row["id"], replace(candidate, group=group), told)


def _with_joined(scan: Scan, found: Sequence[OpenRegression], updates: Sequence[Update]) -> list[Update]:
    """Return the updates of a scan with the series that joined regressions, one update a regression.

    A series that is part of a regression already, as another workload may see it, is no news.
    """
    by_id = {update.regression.id: update for update in updates}
    for one in found:
        news = [j.candidate for j in scan.joined if j.regression == one.id]
        news = [c for c in news if one.member((c.metric_kind, c.metric)) is None]
        if not news:
            continue
        reported = one.candidate
        update = by_id.get(one.id) or Update(
            kind="updated",
            regression=one,
            service=scan.service,
            workload=scan.workload,
            time=scan.end,
            change_time=news[0].change_time,
            level=one.told.get((reported.metric_kind, reported.metric), reported.after),
        )
        by_id[one.id] = replace(update, joined=tuple(news))
    return list(by_id.values())


def _grown(store: Store, scan: Scan, workload: Workload, found: Sequence[OpenRegression]) -> list[Update]:
    """Return one update for each regression of which a series has grown beyond what was told of it.

    The filter stage says so of what grew beyond one candidate, dedup of what joined a regression once more.
    """
    updates: dict[str, Update] = {}
    grown = [*scan.grown, *(joined.candidate for joined in scan.joined)]
    # What grew most speaks for a group; but a regression's own metric goes before its group's.
    for candidate in sorted(grown, key=lambda c: (-abs(c.delta), c.metric_kind, c.metric)):
        series = (candidate.metric_kind, candidate.metric)
        # The newest regression of a series is the one that has grown.
        regression = next((one for one in found if one.member(series)), None)
        if regression is None:
            continue
        member, told = regression.member(series), regression.last_level(series)
        own = member is regression.candidate
        if member is None or told is None or (regression.id in updates and not own):
            continue
        if has_grown(candidate, before=member.before, told=told, **workload.threshold.model_dump()):
            updates[regression.id] = Update(
                kind="updated",
                regression=regression,
                service=scan.service,
                workload=scan.workload,
                time=scan.end,
                change_time=candidate.change_time,
                level=candidate.after if own else _level(store, scan, workload, regression, candidate),
                grown=replace(candidate, before=told),
            )
    return list(updates.values())


def _level(
    store: Store, scan: Scan, workload: Workload, regression: OpenRegression, candidate: Candidate
) -> float:
    """Return the level of a regression's own metric since a member of its group has grown."""
    series = _Series(store, scan, workload, [regression], candidate.change_time)
    values, weights = series.of(regression.candidate, candidate.change_time, scan.end)
    known = weights > 0
    if not known.any():
        own = regression.candidate
        return regression.told.get((own.metric_kind, own.metric), own.after)
    return float(np.average(values[known], weights=weights[known]))


def _resolved(
    store: Store, scan: Scan, workload: Workload, found: Sequence[OpenRegression], dilution: Dilution
) -> list[Update]:
    """Return one update for each regression whose series has returned and stayed."""
    first = scan.end - span_s(scan.end - scan.analysis_start, workload.historical_s)
    old = [one for one in found if one.candidate.change_time <= first]
    if not old:
        return []
    shifts = [_shift_s(one.candidate, first, scan, workload) for one in old]
    starts = (
        min(one.candidate.change_time, first - shift_s) for one, shift_s in zip(old, shifts, strict=True)
    )
    series = _Series(store, scan, workload, old, min(starts))
    updates = []
    for one, shift_s in zip(old, shifts, strict=True):
        reported = one.candidate
        values, weights = series.of(reported, first, scan.end)
        expected = series.of(reported, first - shift_s, scan.end - shift_s)[0] if shift_s else None
        judge = partial(judge_returned, before=reported.before, after=reported.after, expected=expected)
        judged = judge(values, weights)
        if not judged.returned:
            continue
        time = _drop_time(series, reported, first, scan, workload)
        # Asked for last: it reads many series.
        if time and judge(values / dilution(scan, workload, one, first), weights).returned:
            updates.append(_resolution(store, scan, workload, one, time, judged.level))
    return updates


def _shift_s(reported: Candidate, first: float, scan: Scan, workload: Workload) -> float:
    """Return how much earlier the course of the same hours before a regression lies; 0 if there is none."""
    earliest = reported.change_time - workload.historical_s
    return reference_shift_s(first, scan.end, reported.change_time, earliest) or 0.0


def _drop_time(
    series: _Series, reported: Candidate, first: float, scan: Scan, workload: Workload
) -> float | None:
    """Return when a series fell back by a large part of a regression; None if it never did at one time."""
    values, weights = series.of(reported, reported.change_time, scan.end)
    upward = values if reported.delta > 0 else -values
    index, drop = find_drop(upward, weights, span=round((scan.end - first) / workload.resolution_s))
    if drop < ReturnConfig().drop * abs(reported.delta):
        return None
    return reported.change_time + index * workload.resolution_s


def _resolution(
    store: Store, scan: Scan, workload: Workload, one: OpenRegression, time: float, level: float
) -> Update:
    changes = changes_before(store, scan, replace(one.candidate, change_time=time), workload)
    every = (one.candidate, *one.candidate.group)
    return Update(
        kind="resolved",
        regression=one,
        service=scan.service,
        workload=scan.workload,
        time=scan.end,
        change_time=time,
        level=level,
        changes=fixing_changes(changes, frozenset(candidate.metric for candidate in every)),
    )


class _Series:
    """The own metrics of some regressions, from some time to the end of a scan."""

    def __init__(
        self, store: Store, scan: Scan, workload: Workload, found: Sequence[OpenRegression], start: float
    ) -> None:
        self._resolution_s = workload.resolution_s
        windows = math.ceil((scan.end - start) / self._resolution_s - 1e-6)
        self._end = scan.end
        names = {(one.candidate.metric_kind, one.candidate.metric) for one in found}
        matrix = store.series(
            workload.series,
            scan.service,
            scan.end - windows * self._resolution_s,
            scan.end,
            self._resolution_s,
            sorted(names),
        )
        self._windows = windows
        self._rows = rows_of_series(matrix)
        self._values, self._weights = _levels(matrix, workload)

    def of(self, candidate: Candidate, start: float, end: float) -> tuple[FloatArray, FloatArray]:
        """Return values and weights of a candidate's series in [start, end)."""
        # Both ends rounded by themselves would make spans of one length differ where a day is no whole number
        # of windows.
        first = self._column(start)
        columns = slice(first, first + round((end - start) / self._resolution_s))
        row = self._rows.get((candidate.metric_kind, candidate.metric), -1)
        return self._values[row, columns], self._weights[row, columns]

    def _column(self, time: float) -> int:
        return max(self._windows - round((self._end - time) / self._resolution_s), 0)


def _levels(matrix: SeriesMatrix, workload: Workload) -> tuple[FloatArray, FloatArray]:
    """Return values and weights of each series, and as the last row those of one that has no row.

    A subroutine that no sample holds any more takes no CPU; a metric without points says nothing.
    """
    values, weights = values_and_weights(matrix)
    weights = np.broadcast_to(weights, values.shape)
    if workload.series == "service":
        absent = np.full(len(matrix.totals), np.nan)
        nothing = np.zeros(len(matrix.totals))
    else:
        absent, nothing = np.where(matrix.totals > 0, 0.0, np.nan), matrix.totals
    return np.vstack([values, absent]), np.vstack([weights, nothing])
