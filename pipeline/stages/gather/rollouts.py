"""Evidence for the comparison of releases: requests and metrics around a new release, and earlier looks."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.analysis.detect.matrix import select_rows
from pipeline.analysis.detect.metric_direction import worse_direction
from pipeline.model import FloatArray, MetricMetadata, SeriesKey, SeriesMatrix
from pipeline.model.units import DAY_S
from pipeline.releases.requests import (
    LooksMade,
    ReleaseMetrics,
    ReleaseRun,
    RequestRollout,
    Succession,
    build_rollout,
    build_run,
    find_run,
    find_succession,
    periods_begun,
)
from pipeline.settings.workloads import RELEASE_COSTS
from pipeline.storage.interface import RequestQuery, RowQuery, SeriesQuery, Store

SPAN_S = 2 * DAY_S
"""Seconds after its start in which a new release is looked at."""

HISTORY_S = DAY_S
"""Seconds before the new release in which the former one is looked at: all hours of a day."""


@dataclass(frozen=True, slots=True)
class ReleaseRuns:
    """The recent releases of a service.

    Args:
        succession: The latest release and the one before; None if none has begun within SPAN_S.
        begun: Number of periods in which a later release has run so far.
        width_s: Length of a period; 0 without requests.
    """

    succession: Succession | None
    begun: int
    width_s: float


def gather_releases(store: Store, service: str, end: float) -> ReleaseRuns:
    """Return the releases of a service up to ``end``, without types of requests: most calls need none."""
    totals = store.counts(RequestQuery(service, end - SPAN_S - HISTORY_S, end))
    succession = find_succession(totals)
    if succession is not None:
        succession = (
            succession.between(succession.begun - HISTORY_S, end)
            if succession.begun >= end - SPAN_S
            else None
        )
    return ReleaseRuns(succession, periods_begun(totals), totals.width_s)


def gather_rollout(store: Store, service: str, succession: Succession) -> RequestRollout:
    """Return a succession with the requests of both releases by type."""
    start, end = float(succession.starts[0]), float(succession.starts[-1]) + succession.width_s
    releases = (succession.old, succession.new)
    return build_rollout(succession, store.counts(RequestQuery(service, start, end, releases)))


def gather_run(store: Store, service: str, end: float) -> ReleaseRun | None:
    """Return the release that runs alone in the last HISTORY_S before ``end``; None without requests."""
    run = find_run(store.counts(RequestQuery(service, end - HISTORY_S, end)))
    if run is None:
        return None
    release, starts = run
    return build_run(release, starts, store.counts(RequestQuery(service, end - HISTORY_S, end, (release,))))


def gather_metrics(
    store: Store, service: str, periods: RequestRollout | ReleaseRun, chosen: ReleaseMetrics
) -> SeriesMatrix:
    """Return the metrics by which releases of a service are compared, in the given periods."""
    start, end = float(periods.starts[0]), float(periods.starts[-1]) + periods.width_s
    matrix = store.series(SeriesQuery("service", service, start, end, periods.width_s))
    rows = store.rows(RowQuery("metric_metadata", service)) if matrix.names else []
    by_metric = {row["metric"]: MetricMetadata(row["unit"], row["kind"], row["direction"]) for row in rows}
    all_metadata = [by_metric.get(name, MetricMetadata()) for name in matrix.names]
    taken = [
        chosen.takes(service, name, metadata, worse_direction(metadata))
        for name, metadata in zip(matrix.names, all_metadata, strict=True)
    ]
    return select_rows(matrix, [row for row, is_taken in enumerate(taken) if is_taken])


def gather_looks(store: Store, service: str, succession: Succession) -> LooksMade:
    """Return the looks at a new release so far; a look that compared anything has series."""
    columns = ("series", "candidates")
    rows = store.rows(
        RowQuery(
            "scans", service, succession.established, columns=columns, equal={"workload": RELEASE_COSTS.name}
        )
    )
    last = max((float(row["time"]) for row in rows), default=0.0)
    return LooksMade(last, sum(row["series"] > 0 for row in rows), any(row["candidates"] for row in rows))


def gather_release(
    store: Store, service: str, release: str, metric: str, end: float
) -> tuple[RequestRollout, FloatArray] | None:
    """Return the periods of a release and of the one before up to a look, and a metric in them: (periods,).

    The result is None if the store no longer has them; the metric is NaN in periods without points.

    Raises:
        StoreUnavailable: the store did not answer.
    """
    succession = gather_releases(store, service, end).succession
    if succession is None or succession.new != release:
        return None
    rollout = gather_rollout(store, service, succession)
    start, end = float(rollout.starts[0]), float(rollout.starts[-1]) + rollout.width_s
    matrix = store.series(
        SeriesQuery("service", service, start, end, rollout.width_s, [SeriesKey("service", metric)])
    )
    if not matrix.names:
        return None
    column = ((rollout.starts - matrix.start) / rollout.width_s).round().astype(int)
    return rollout, matrix.samples[0][column]
