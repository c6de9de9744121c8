"""What rootcause shows: the funnel as it runs, events by type, and how late they are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pipeline.model import Scan
from pipeline.stages.event_counts import REPORTED, Brought, EventCounts
from pipeline.telemetry.instruments import OTHER
from pipeline.telemetry.metrics import MOST_WORKLOADS
from tests.support.builders import build_candidate, build_dropped

NOW = 1_700_000_000.0


def brought(workload: str = "w", **fields: Any) -> Brought:
    nothing: dict[str, Any] = {"dropped": (), "change_times": (), "late": 0, "updates": ()}
    scan = Scan("shop", workload, NOW - 1000.0, NOW - 100.0, NOW, NOW, series=7)
    return Brought(**{"scan": scan, **nothing, **fields})


def shown(counts: EventCounts, name: str, label: str) -> dict[str, float]:
    """Return what is above nothing of a metric, by a label."""
    return {labels[label]: value for metric, labels, value in counts.samples() if metric == name and value}


def test_everything_is_shown_from_the_start() -> None:
    samples = {(name, labels.get("type")): value for name, labels, value in EventCounts("r", ["w"]).samples()}
    assert {kind for name, kind in samples if name == "events_total"} == {"detected", "updated", "resolved"}
    assert ("event_delay_seconds_count", None) in samples
    assert not any(samples.values())


def test_what_was_not_published_is_not_counted() -> None:
    counts = EventCounts("r", ["w"])
    one = brought(change_times=[NOW - 600.0])
    counts.hold(one)
    counts.begin()  # the batch comes again
    counts.hold(one)
    assert shown(counts, "events_total", "type") == {}
    counts.publish(NOW + 30.0)
    counts.publish(NOW + 60.0)
    assert shown(counts, "events_total", "type") == {"detected": 1}
    assert shown(counts, "event_delay_seconds_sum", "workload") == {"w": 630.0}


def test_the_funnel_counts_each_candidate_once_and_what_is_reported_late_only_as_an_event() -> None:
    counts = EventCounts("r", ["w"])
    one = brought(change_times=[NOW, NOW], late=3, dropped=["muted"])
    steps = ("threshold", "threshold", "of a later version")
    scan = replace(one.scan, dropped=tuple(build_dropped(build_candidate(), step) for step in steps))
    counts.hold(replace(one, scan=scan))
    counts.publish(NOW)
    assert shown(counts, "candidates_total", "step") == {"threshold": 2, OTHER: 1, "muted": 1, REPORTED: 2}
    assert shown(counts, "events_total", "type") == {"detected": 5}


def test_workloads_that_scans_bring_are_named_within_a_bound() -> None:
    counts = EventCounts("r", ["w"])
    for number in range(MOST_WORKLOADS + 5):
        counts.hold(brought(f"w{number}", change_times=[NOW]))
    counts.publish(NOW)
    found = shown(counts, "candidates_total", "workload")
    assert len(found) == MOST_WORKLOADS
    assert found[OTHER] == 6
