"""Counts of detect: its scans by workload, and the services that it hears or no longer hears."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pipeline.model import Record, Scan
from pipeline.model.units import DAY_S, MINUTE_S
from pipeline.telemetry.instruments import Histogram, LabelBound
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
"""A service of which nothing was counted for so long is silent: twice what makes a partition idle."""

FORGOTTEN_S = DAY_S
"""A service that is silent for so long was switched off, and is no longer shown."""

MOST_SILENT = 100
"""Silent services that are shown by name, those that fell silent last."""

MOST_SERVICES = 10_000
"""Services that are remembered."""

MOST_UNJUDGED = 200
"""Services whose scans without enough data are shown by name; the others are counted together."""


@dataclass(slots=True)
class _Heard:
    partition: int  # of ``windows``
    at_s: float  # by the clock
    watermark: float  # the latest, in event time


class ScanCounts:
    """What one detect worker shows on /metrics. One thread writes, another may ask for the samples.

    Args:
        stage: The stage's name, a label of everything.
        intervals_s: By workload, the event time between two of its scans.
    """

    def __init__(self, stage: str, intervals_s: Mapping[str, float]) -> None:
        self._stage = stage
        self._intervals_s = intervals_s
        self._scans = Counter(dict.fromkeys(intervals_s, 0))
        self._series = Counter(dict.fromkeys(intervals_s, 0))
        self._took = Histogram(SCAN_S, SCAN_BOUNDS_S, ["stage", "workload"])
        self._delays = Histogram(SCAN_DELAY_S, DELAY_BOUNDS_S, ["stage", "workload"])
        for workload in intervals_s:
            self._took.show(stage, workload)
            self._delays.show(stage, workload)
        self._unjudged: Counter[tuple[str, str]] = Counter()  # scans by service and code
        self._unjudged_services = LabelBound(MOST_UNJUDGED)
        self._heard: dict[str, _Heard] = {}  # the one heard longest ago is first
        self._scanned: dict[str, Mapping[str, float]] = {}  # by service: the end of each workload's last scan
        self._busy_since: float | None = None

    def keep(self, partitions: Sequence[int]) -> None:
        """Forget services of other partitions, of which this process hears nothing any more."""
        kept = set(partitions)
        for service in [name for name, heard in self._heard.items() if heard.partition not in kept]:
            del self._heard[service]
            self._scanned.pop(service, None)

    def take(self, batch: Sequence[Record], now: float) -> None:
        """Note whose progress a new batch holds; until ``rest`` nobody else can be heard."""
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
        """Note that a batch is done."""
        self._busy_since = None

    def follow(self, service: str, scanned: Mapping[str, float]) -> None:
        """Show how far a service is scanned from now on: ``scanned`` is what detect keeps up to date."""
        self._scanned[service] = scanned

    def ran(self, workload: str, took_s: float) -> None:
        """Count how long a scan took; it may come again before it is published."""
        self._took.observe(took_s, self._stage, workload)

    def published(self, scan: Scan, now: float) -> None:
        """Count a scan that is on its topic."""
        self._scans[scan.workload] += 1
        self._series[scan.workload] += scan.series
        self._delays.observe(now - scan.end, self._stage, scan.workload)
        if scan.unjudged:
            shown = self._unjudged_services.of(scan.service)
            self._unjudged.update((shown, one.code) for one in scan.unjudged)

    def samples(self, now: float) -> list[Sample]:
        """Return everything counted, and who is silent, at a time by the clock."""
        stage = {"stage": self._stage}
        unjudged = [
            (f"{UNJUDGED}_total", {**stage, "service": service, "reason": code}, float(count))
            for (service, code), count in self._unjudged.copy().items()
        ]
        by_workload = (
            (SCANS, self._scans),
            (SCANNED_SERIES, self._series),
            (SCAN_INTERVAL_S, self._intervals_s),
        )
        return [
            *unjudged,
            *(
                (name, {**stage, "workload": workload}, float(value))
                for name, values in by_workload
                for workload, value in dict(values).items()
            ),
            *self._took.samples(),
            *self._delays.samples(),
            *self._services(now),
        ]

    def _services(self, now: float) -> Iterator[Sample]:
        """Yield how many services there are, who is silent, and how far those that are not are scanned.

        While a batch is worked through it is still the time at which it came: who waits for it is not silent.
        """
        asked = now if self._busy_since is None else self._busy_since
        known = {
            service: heard
            for service, heard in self._heard.copy().items()
            if asked - heard.at_s < FORGOTTEN_S
        }
        silent = [service for service, heard in known.items() if asked - heard.at_s >= SILENT_S]
        stage = {"stage": self._stage}
        yield SERVICES, stage, len(known)
        yield SILENT_SERVICES, stage, len(silent)
        for service in silent[-MOST_SILENT:]:
            yield SILENT_SINCE_S, {**stage, "service": service}, known[service].at_s
        # A service that sends what is long past, as an import does, is not behind.
        live = [s for s in known if s not in set(silent) and now - known[s].watermark < FORGOTTEN_S]
        for workload in self._intervals_s:
            ends = [end for s in live if (end := self._scanned.get(s, {}).get(workload)) is not None]
            if ends:
                yield SCANNED_UNTIL_S, {**stage, "workload": workload}, min(ends)
