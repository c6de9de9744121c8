"""Counts of detect: scans by workload, and services with and without recent progress."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pipeline.model import Record, Scan
from pipeline.model.units import DAY_S, MINUTE_S
from pipeline.telemetry.instruments import LabelBound, counter, histogram, samples_of
from pipeline.telemetry.metrics import (
    DELAY_BOUNDS_S,
    SCAN_BOUNDS_S,
    SCAN_DELAY_S,
    SCAN_INTERVAL_S,
    SCAN_S,
    SCANNED_SERIES,
    SCANNED_UNTIL_S,
    SCANS,
    SERVICES,
    SILENT_SERVICES,
    SILENT_SINCE_S,
    UNJUDGED,
    Sample,
)

SILENT_S = 10 * MINUTE_S
"""Seconds without counts after which a service is silent: twice those that make a partition idle."""

FORGOTTEN_S = DAY_S
"""Seconds of silence after which a service counts as switched off and is no longer shown."""

MOST_SILENT = 100
"""Most silent services that are shown by name: those that fell silent last."""

MOST_SERVICES = 10_000
"""Most services that are remembered."""

MOST_UNJUDGED = 200
"""Services whose scans without enough data are shown by name; the others are counted together."""


@dataclass(slots=True)
class _Heard:
    partition: int  # of ``windows``
    at_s: float  # by the clock
    watermark: float  # the latest, in event time


class ScanCounts:
    """Metrics of one detect worker. One thread writes, another may read the samples.

    Args:
        stage: The stage's name, a label of everything.
        intervals_s: By workload, the event time between two of its scans.
    """

    def __init__(self, stage: str, intervals_s: Mapping[str, float]) -> None:
        self._stage = stage
        self._intervals_s = intervals_s
        self._scans = counter(SCANS, "stage", "workload")
        self._series = counter(SCANNED_SERIES, "stage", "workload")
        self._took = histogram(SCAN_S, SCAN_BOUNDS_S, "stage", "workload")
        self._delays = histogram(SCAN_DELAY_S, DELAY_BOUNDS_S, "stage", "workload")
        for workload in intervals_s:
            for instrument in (self._scans, self._series, self._took, self._delays):
                instrument.labels(stage, workload)
        self._unjudged = counter(f"{UNJUDGED}_total", "stage", "service", "reason")
        self._unjudged_services = LabelBound(MOST_UNJUDGED)
        self._heard: dict[str, _Heard] = {}  # the one heard longest ago is first
        self._scanned: dict[str, Mapping[str, float]] = {}  # by service: the end of each workload's last scan
        self._busy_since: float | None = None

    def keep(self, partitions: Sequence[int]) -> None:
        """Forget services of other partitions, whose progress this process no longer gets."""
        owned = set(partitions)
        for service in [name for name, heard in self._heard.items() if heard.partition not in owned]:
            del self._heard[service]
            self._scanned.pop(service, None)

    def take(self, batch: Sequence[Record], now: float) -> None:
        """Note the services with progress in a new batch; until ``rest`` no other progress arrives."""
        self._busy_since = now
        for record in batch:
            step = record.payload
            before = self._heard.pop(step.service, None)
            watermark = max(step.watermark, before.watermark) if before else step.watermark
            self._heard[step.service] = _Heard(record.partition, now, watermark)
        while len(self._heard) > MOST_SERVICES:
            oldest = next(iter(self._heard))
            del self._heard[oldest]
            self._scanned.pop(oldest, None)

    def rest(self) -> None:
        """Note that a batch is finished."""
        self._busy_since = None

    def follow(self, service: str, scanned: Mapping[str, float]) -> None:
        """Show the progress of a service's scans from now on; detect keeps ``scanned`` up to date."""
        self._scanned[service] = scanned

    def ran(self, workload: str, took_s: float) -> None:
        """Count the seconds that a scan took; it may be repeated before it is published."""
        self._took.labels(self._stage, workload).observe(max(0.0, took_s))

    def published(self, scan: Scan, now: float) -> None:
        """Count a published scan."""
        self._scans.labels(self._stage, scan.workload).inc()
        self._series.labels(self._stage, scan.workload).inc(scan.series)
        self._delays.labels(self._stage, scan.workload).observe(max(0.0, now - scan.end))
        for reason in scan.unjudged:
            shown = self._unjudged_services.of(scan.service)
            self._unjudged.labels(self._stage, shown, reason.code).inc()

    def samples(self, now: float) -> list[Sample]:
        """Return all counts, and the silent services, at the time ``now``."""
        return [
            *(
                (SCAN_INTERVAL_S, {"stage": self._stage, "workload": workload}, interval_s)
                for workload, interval_s in self._intervals_s.items()
            ),
            *samples_of(self._unjudged, self._scans, self._series, self._took, self._delays),
            *self._services(now),
        ]

    def _services(self, now: float) -> Iterator[Sample]:
        """Yield the number of services, the silent ones, and the progress of scans of all others.

        While a batch is handled, silence is measured at the time of its arrival: services whose progress
        waits are not silent.
        """
        measured_at = now if self._busy_since is None else self._busy_since
        services = {
            service: heard
            for service, heard in self._heard.copy().items()
            if measured_at - heard.at_s < FORGOTTEN_S
        }
        silent = [service for service, heard in services.items() if measured_at - heard.at_s >= SILENT_S]
        stage = {"stage": self._stage}
        yield SERVICES, stage, len(services)
        yield SILENT_SERVICES, stage, len(silent)
        for service in silent[-MOST_SILENT:]:
            yield SILENT_SINCE_S, {**stage, "service": service}, services[service].at_s
        # A service that sends old data, as an import does, does not lag.
        live = [s for s in services if s not in set(silent) and now - services[s].watermark < FORGOTTEN_S]
        for workload in self._intervals_s:
            ends = [end for s in live if (end := self._scanned.get(s, {}).get(workload)) is not None]
            if ends:
                yield SCANNED_UNTIL_S, {**stage, "workload": workload}, min(ends)
