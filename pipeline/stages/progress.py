"""Progress messages: how far the event time of services has come in a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipeline.messages.scans import encode_progress
from pipeline.model import MetricPoints, Outgoing, Profile, Progress, Record, RequestCounts


def progress_messages(
    records: Sequence[Record], now: float, waits: Mapping[tuple[str, int], float]
) -> list[Outgoing]:
    """Return one message per service and partition: how far its event time has come.

    No further than now: a host whose clock is ahead would end windows that others still fill. And as far
    behind the latest as hosts are that are late by habit.
    """
    spans: dict[tuple[str, int], tuple[float, float]] = {}
    for record in records:
        start, end = _span(record.payload)
        position = (record.payload.service, record.partition)
        earliest, latest = spans.get(position, (start, end))
        spans[position] = (min(earliest, start), max(latest, end))
    progress = [
        Progress(
            service,
            records[0].topic,
            partition,
            min(latest, now) - waits.get((service, partition), 0.0),
            earliest,
        )
        for (service, partition), (earliest, latest) in spans.items()
    ]
    return [Outgoing("windows", step.service, encode_progress(step)) for step in progress]


def _span(payload: Profile | MetricPoints | RequestCounts) -> tuple[float, float]:
    if not isinstance(payload, MetricPoints):
        return payload.start, payload.end
    return float(payload.timestamps.min()), float(payload.timestamps.max())
