"""What the comparison of releases asks for: requests and metrics around a new release, and earlier looks."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.analysis.detect.matrix import select_rows
from pipeline.analysis.detect.metric_direction import worse_direction
from pipeline.model import FloatArray, MetricMetadata, SeriesKey, SeriesMatrix
from pipeline.model.units import DAY_S
from pipeline.releases.requests import (
    LooksMade,
    ReleaseMetrics,
    Rollout,
    Run,
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
"""How long a new release is looked at."""

HISTORY_S = DAY_S
"""How long before the new release the one before is looked at: all hours of a day."""


@dataclass(frozen=True, slots=True)
class ReleaseRuns:
    """The releases of a service that ran of late.

    Args:
        succession: The latest after the one before; None where none has come within SPAN_S.
        begun: In how many periods a later one has run so far.
        width_s: Length of a period; 0 without requests.
    """

    succession: Succession | None
    begun: int
    width_s: float


def gather_releases(store: Store, service: str, end: float) -> ReleaseRuns:
    """Return the releases of a service up to a time, all types together: that is all that most calls need."""
    totals = store.counts(RequestQuery(service, end - SPAN_S - HISTORY_S, end))
    found = find_succession(totals)
    if found is not None:
        found = found.between(found.begun - HISTORY_S, end) if found.begun >= end - SPAN_S else None
    return ReleaseRuns(found, periods_begun(totals), totals.width_s)


def gather_rollout(store: Store, service: str, succession: Succession) -> Rollout:
    """Return a succession with the requests of both releases by type."""
    start, end = float(succession.starts[0]), float(succession.starts[-1]) + succession.width_s
    releases = (succession.old, succession.new)
    return build_rollout(succession, store.counts(RequestQuery(service, start, end, releases)))


def gather_run(store: Store, service: str, end: float) -> Run | None:
    """Return the release of a service that runs alone, in the last HISTORY_S; None without requests."""
    found = find_run(store.counts(RequestQuery(service, end - HISTORY_S, end)))
    if found is None:
        return None
    release, starts = found
    return build_run(release, starts, store.counts(RequestQuery(service, end - HISTORY_S, end, (release,))))


def gather_metrics(
    store: Store, service: str, periods: Rollout | Run, chosen: ReleaseMetrics
) -> SeriesMatrix:
    """Return the metrics by which releases of a service are compared, in some periods."""
    start, end = float(periods.starts[0]), float(periods.starts[-1]) + periods.width_s
    matrix = store.series(SeriesQuery("service", service, start, end, periods.width_s))
    rows = store.rows(RowQuery("metric_metadata", service)) if matrix.names else []
    said = {row["metric"]: MetricMetadata(row["unit"], row["kind"], row["direction"]) for row in rows}
    every = [said.get(name, MetricMetadata()) for name in matrix.names]
    taken = [
        chosen.takes(service, name, one, worse_direction(one))
        for name, one in zip(matrix.names, every, strict=True)
    ]
    return select_rows(matrix, [row for row, is_taken in enumerate(taken) if is_taken])


def gather_looks(store: Store, service: str, succession: Succession) -> LooksMade:
    """Return the looks at a new release so far; those that compared have series."""
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
) -> tuple[Rollout, FloatArray] | None:
    """Return the periods of a release and of the one before up to a look, and a metric in them: (periods,).

    It is None where the store no longer has them; the metric is NaN in periods without points.

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
