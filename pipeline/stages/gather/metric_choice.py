"""The service-level metrics that a workload's scan looks at, by what the store knows of them."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.analysis.detect.matrix import select_rows
from pipeline.analysis.detect.metric_direction import worse_direction
from pipeline.messages.fields import EARLIEST_S, LATEST_S
from pipeline.model import MetricMetadata, SeriesMatrix, Unjudged
from pipeline.settings.workloads import Workload, unknown_direction
from pipeline.storage.interface import Store


def choose_metrics(
    store: Store, service: str, matrix: SeriesMatrix, workload: Workload, workloads: Sequence[Workload]
) -> tuple[SeriesMatrix, tuple[str, ...]]:
    """Return the metrics that a workload looks at, and those of which nobody knows when they get worse.

    Args:
        store: With what is said of metrics.
        service: Whose metrics.
        matrix: All of them.
        workload: One of ``workloads``.
        workloads: All that run.
    """
    if not matrix.names:
        return matrix, ()
    rows = store.rows("metric_metadata", service, EARLIEST_S, LATEST_S)
    worse = {
        row["metric"]: worse_direction(MetricMetadata(row["unit"], row["kind"], row["direction"]))
        for row in rows
    }
    unknown = [
        name for name in matrix.names if worse.get(name) is None and unknown_direction(name, workloads)
    ]
    skipped = frozenset(unknown) if workload.opposite else frozenset[str]()
    wanted = [
        row
        for row, name in enumerate(matrix.names)
        if name not in skipped and workload.looks_at(name, worse.get(name))
    ]
    return select_rows(matrix, wanted), tuple(unknown) if _says_so(workload, workloads) else ()


def direction_unknown(metrics: Sequence[str]) -> Unjudged:
    """Return that some metrics are not judged: nothing says whether a rise or a drop is worse."""
    return Unjudged("direction_unknown", len(metrics), 0.0, 1.0)


def _says_so(workload: Workload, workloads: Sequence[Workload]) -> bool:
    """Return whether it is this workload that says what is judged by none: the first that guesses."""
    return workload == next((one for one in workloads if one.opposite), None)
