"""What detect shows: scans by workload, and who fell silent, with labels within bounds."""

from __future__ import annotations

from pipeline.model import Progress, Record, Scan, Unjudged
from pipeline.stages.scan_counts import (
    FORGOTTEN_S,
    MOST_SERVICES,
    MOST_SILENT,
    MOST_UNJUDGED,
    SILENT_S,
    ScanCounts,
)
from pipeline.telemetry.instruments import OTHER

NOW = 1_700_000_000.0


def counts_of() -> ScanCounts:
    return ScanCounts("detect", {"fast": 300.0, "slow": 7200.0})


def progress(service: str, watermark: float = NOW, partition: int = 0) -> Record:
    return Record("windows", partition, 0, Progress(service, "profiles", 0, watermark, NOW - 100.0))


def scan(service: str = "shop", **fields: object) -> Scan:
    windows = (NOW - 1000.0, NOW - 100.0, NOW - 50.0, NOW - 50.0)
    return Scan(service, "fast", *windows, series=7, **fields)  # type: ignore[arg-type]


def shown(counts: ScanCounts, name: str, now: float) -> dict[str, float]:
    """Return a metric's values by its last label."""
    return {
        list(labels.values())[-1]: value for metric, labels, value in counts.samples(now) if metric == name
    }


def take(counts: ScanCounts, now: float, *batch: Record) -> None:
    counts.take(batch, now)
    counts.rest()


def test_scans_are_shown_from_the_start_and_counted_by_workload() -> None:
    counts = counts_of()
    assert shown(counts, "scans_total", NOW) == {"fast": 0, "slow": 0}
    counts.ran("fast", 2.0)
    counts.published(scan(), NOW)
    assert shown(counts, "scans_total", NOW) == {"fast": 1, "slow": 0}
    assert shown(counts, "scanned_series_total", NOW) == {"fast": 7, "slow": 0}
    assert shown(counts, "scan_seconds_sum", NOW) == {"fast": 2, "slow": 0}
    assert shown(counts, "scan_delay_seconds_sum", NOW) == {"fast": 50, "slow": 0}
    assert shown(counts, "scan_interval_seconds", NOW) == {"fast": 300, "slow": 7200}


def test_a_service_is_named_while_it_is_silent_and_forgotten_after_a_day() -> None:
    counts = counts_of()
    take(counts, NOW, progress("shop"), progress("mail"))
    for later in (SILENT_S - 1.0, SILENT_S):
        take(counts, NOW + later, progress("mail"))
    assert shown(counts, "silent_service_timestamp_seconds", NOW + SILENT_S - 1.0) == {}
    assert shown(counts, "silent_service_timestamp_seconds", NOW + SILENT_S) == {"shop": NOW}
    assert shown(counts, "silent_services", NOW + SILENT_S) == {"detect": 1}
    assert shown(counts, "services", NOW + SILENT_S) == {"detect": 2}
    take(counts, NOW + SILENT_S + 5.0, progress("shop"))
    assert shown(counts, "silent_services", NOW + SILENT_S + 5.0) == {"detect": 0}
    gone = NOW + SILENT_S + 5.0 + FORGOTTEN_S
    assert shown(counts, "silent_service_timestamp_seconds", gone) == {}
    assert shown(counts, "services", gone) == {"detect": 0}


def test_nobody_is_silent_because_detect_is_busy() -> None:
    counts = counts_of()
    take(counts, NOW, progress("shop"), progress("mail"))
    counts.take([progress("mail")], NOW + 5.0)
    assert shown(counts, "silent_services", NOW + 3000.0) == {"detect": 0}
    counts.rest()
    assert shown(counts, "silent_services", NOW + 3000.0) == {"detect": 2}


def test_of_many_silent_services_those_that_stopped_last_are_named() -> None:
    counts = counts_of()
    for number in range(MOST_SILENT + 50):
        take(counts, NOW + number, progress(f"s{number}"))
    found = shown(counts, "silent_service_timestamp_seconds", NOW + 2 * SILENT_S)
    assert set(found) == {f"s{number}" for number in range(50, MOST_SILENT + 50)}
    assert shown(counts, "silent_services", NOW + 2 * SILENT_S) == {"detect": MOST_SILENT + 50}


def test_services_are_remembered_within_a_bound() -> None:
    counts = counts_of()
    take(counts, NOW, *(progress(f"s{number}") for number in range(MOST_SERVICES + 5)))
    assert shown(counts, "services", NOW) == {"detect": MOST_SERVICES}


def test_services_of_partitions_that_went_to_another_worker_are_its_to_show() -> None:
    counts = counts_of()
    take(counts, NOW, progress("shop", partition=0), progress("mail", partition=1))
    counts.keep([1, 2])
    assert shown(counts, "silent_service_timestamp_seconds", NOW + SILENT_S) == {"mail": NOW}


def test_scans_are_as_old_as_those_of_the_live_service_furthest_behind() -> None:
    counts = counts_of()
    take(counts, NOW, progress("shop"), progress("mail"), progress("import", NOW - 2 * FORGOTTEN_S))
    take(counts, NOW - SILENT_S, progress("silent"))
    assert shown(counts, "scanned_until_timestamp_seconds", NOW) == {}
    for service, end in (("shop", 300.0), ("mail", 600.0), ("import", 10.0**6), ("silent", 10.0**6)):
        counts.follow(service, {"fast": NOW - end})
    assert shown(counts, "scanned_until_timestamp_seconds", NOW) == {"fast": NOW - 600.0}


def test_services_without_enough_data_are_named_within_a_bound() -> None:
    counts = counts_of()
    for number in range(MOST_UNJUDGED + 3):
        counts.published(scan(f"s{number}", unjudged=(Unjudged("no_data", 1, 0.0, 0.0),)), NOW)
    found = [
        (labels["service"], value)
        for name, labels, value in counts.samples(NOW)
        if name == "unjudged_scans_total"
    ]
    assert len(found) == MOST_UNJUDGED + 1
    assert found[-1] == (OTHER, 3)
