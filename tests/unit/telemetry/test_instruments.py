"""Histograms and bounded labels as Prometheus reads them."""

from __future__ import annotations

import pytest

from pipeline.telemetry.instruments import OTHER, Histogram, LabelBound, Sample


def by_bucket(samples: list[Sample]) -> dict[str, float]:
    return {labels["le"]: value for name, labels, value in samples if name.endswith("_bucket")}


def test_buckets_add_up_and_hold_their_upper_bound() -> None:
    histogram = Histogram("delay_seconds", [1, 2.5, 86400.0], ["stage"])
    for value in (0.0, 1.0, 1.1, 2.5, 90_000.0):
        histogram.observe(value, "detect")
    samples = histogram.samples()
    assert by_bucket(samples) == {"1": 2, "2.5": 4, "86400": 4, "+Inf": 5}
    assert samples[-2:] == [
        ("delay_seconds_sum", {"stage": "detect"}, pytest.approx(90_004.6)),
        ("delay_seconds_count", {"stage": "detect"}, 5),
    ]
    assert all(labels["stage"] == "detect" for _, labels, _ in samples)


def test_what_comes_from_a_clock_ahead_counts_as_no_delay() -> None:
    histogram = Histogram("delay_seconds", [1])
    histogram.observe(-5.0)
    assert by_bucket(histogram.samples()) == {"1": 1, "+Inf": 1}
    assert ("delay_seconds_sum", {}, 0.0) in histogram.samples()


def test_labels_are_shown_before_anything_is_counted() -> None:
    histogram = Histogram("delay_seconds", [1], ["workload"])
    assert histogram.samples() == []
    histogram.show("short")
    histogram.observe(3.0, "long")
    histogram.show("long")
    counts = {labels["workload"]: value for name, labels, value in histogram.samples() if "count" in name}
    assert counts == {"short": 0, "long": 1}


def test_a_label_takes_the_first_values_and_counts_the_rest_together() -> None:
    bound = LabelBound(2)
    assert [bound.of(value) for value in ("a", "b", "c", "a", "d")] == ["a", "b", OTHER, "a", OTHER]
