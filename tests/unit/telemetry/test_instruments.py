"""Samples of histograms, and bounded labels, as Prometheus reads them."""

from __future__ import annotations

from pipeline.telemetry.instruments import OTHER, LabelBound, histogram, samples_of


def test_bounds_of_buckets_are_spelt_without_exponents() -> None:
    delays = histogram("delay_seconds", [1, 2.5, 86400.0, 1_382_400.0], "stage")
    for value in (0.0, 1.0, 1.1, 2.5, 90_000.0):
        delays.labels("detect").observe(value)
    samples = samples_of(delays)
    buckets = {labels["le"]: value for name, labels, value in samples if name.endswith("_bucket")}
    assert buckets == {"1": 2, "2.5": 4, "86400": 4, "1382400": 5, "+Inf": 5}
    assert {name: labels for name, labels, _ in samples if "le" not in labels} == {
        "delay_seconds_sum": {"stage": "detect"},
        "delay_seconds_count": {"stage": "detect"},
    }


def test_a_label_takes_the_first_values_and_counts_the_rest_together() -> None:
    bound = LabelBound(2)
    assert [bound.of(value) for value in ("a", "b", "c", "a", "d")] == ["a", "b", OTHER, "a", OTHER]
