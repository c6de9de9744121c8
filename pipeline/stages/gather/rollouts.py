"""What the comparison of releases asks for: requests and metrics around a new release, and earlier looks."""

from __future__ import annotations

from pipeline.codec.fields import EARLIEST_S, LATEST_S
from pipeline.detect.matrix import select_rows
from pipeline.detect.metric_direction import worse_direction
from pipeline.model import MetricMetadata, SeriesMatrix
from pipeline.releases import Rollout, find_rollout
from pipeline.storage.interface import Store
from pipeline.units import DAY_S
from pipeline.workloads import RELEASE_COSTS

SPAN_S = 2 * DAY_S
"""How far back requests are read: a day of the release before, and as long for the new one."""

HISTORY_S = DAY_S
"""How long before the new release the one before is looked at: all hours of a day."""


def gather_rollout(store: Store, service: str, end: float) -> tuple[Rollout | None, float]:
    """Return the latest release of a service beside the one before, up to a time, and how long periods are.

    It is None without two releases, and periods are 0 s long without requests.
    """
    requests = store.requests(service, end - SPAN_S, end)
    found = find_rollout(requests)
    width_s = float(max(requests.widths_s, default=0.0))
    return found and found.since(found.begun - HISTORY_S).until(end), width_s


def gather_metrics(store: Store, service: str, rollout: Rollout) -> SeriesMatrix:
    """Return the metrics that requests add up to, in the periods of a rollout: those of RELEASE_COSTS.

    What a metric of such a name says of itself counts: one in which a rise is no regression is left out.
    """
    start, end = float(rollout.starts[0]), float(rollout.starts[-1]) + rollout.width_s
    matrix = store.series("service", service, start, end, rollout.width_s)
    rows = store.rows("metric_metadata", service, EARLIEST_S, LATEST_S) if matrix.names else []
    worse = {
        row["metric"]: worse_direction(MetricMetadata(row["unit"], row["kind"], row["direction"]))
        for row in rows
    }
    chosen = [
        row
        for row, name in enumerate(matrix.names)
        if RELEASE_COSTS.looks_at(name) and worse.get(name, "up") in (None, "up")
    ]
    return select_rows(matrix, chosen)


def gather_looks(store: Store, service: str, rollout: Rollout) -> tuple[list[float], bool]:
    """Return the ends of the looks at a rollout so far, and whether one of them found a regression."""
    since = rollout.begun + rollout.width_s  # looks at the release before end with that at the latest
    rows = store.rows("scans", service, since, LATEST_S, workload=RELEASE_COSTS.name)
    return [float(row["time"]) for row in rows], any(row["candidates"] for row in rows)
